"""Values between which the search for the gate's figures chooses, smallest first; defaults are left out."""

from __future__ import annotations

from collections.abc import Mapping

LADDERS: Mapping[str, tuple[str, ...]] = {
    # the instrument: what is learned, and how much of it is held back
    "quantile": ("0.75", "0.8", "0.95", "1.0"),
    "window_rows": ("20", "100"),
    "few_rows": ("5", "20"),
    "two_kinds_factor": ("1.25", "2.0", "3.0"),
    "measured_margin_mib": ("0", "32", "128", "256"),
    "scaled_margin": ("0.05", "0.1", "0.25"),
    "edited_margin": ("0.05", "0.1", "0.25"),
    "similar_margin": ("0.0", "0.05", "0.25"),
    "hint_margin": ("0.05", "0.25"),
    "declared_margin": ("0.0", "0.1", "0.15"),
    # settling: when a charge shrinks, and to what
    "settle_seconds": ("30", "90", "120", "180"),
    "settle_context_factor": ("1.0", "2.0"),
    "settle_busy": ("0.05", "0.2"),
    "flat_fraction": ("0.01", "0.04"),
    "flat_mib": ("32", "128"),
    "settle_factor": ("1.0", "1.05", "1.2"),
    "settle_add_mib": ("0", "128", "512"),
    "settle_peak_factor": ("1.0", "2.0"),
    "unproven_settle_seconds": ("450", "1800"),
    # caps and what follows a death
    "cap_factor": ("1.1", "1.2", "1.5", "2.0"),
    "cap_add_mib": ("256", "1024"),
    "death_factor": ("1.25", "2.0"),
    "preallocated_share": ("0.5", "0.9"),
    # the gate
    "cold_start_share": ("0.2", "0.3", "0.5", "0.6", "0.8"),
    "floor_vram_mib": ("128", "512", "1024"),
    "floor_vram_share": ("0.005", "0.02"),
    "ageing_hours": ("12", "48"),
    "default_duration_seconds": ("1800", "7200"),
    "plan_quantile": ("0.3", "0.4", "0.5", "0.7", "0.8", "0.9"),
    "overdue_share": ("0.1", "0.5", "1.0"),
}
