"""Who starts where in one cycle, and what is kept for whoever waits longest."""
