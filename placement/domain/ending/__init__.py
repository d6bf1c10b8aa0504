"""How runs end: who is stopped, what an end proves, who is to blame, and who is run again."""
