"""Leases on declared devices: who gets which, why not, who waits for whom, who is evicted."""
