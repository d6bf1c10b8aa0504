"""The gate: whether one job may start at one place, every question with its figures."""
