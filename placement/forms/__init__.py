"""Forms: text that people type becomes values; what was typed is never lost."""
