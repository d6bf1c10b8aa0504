"""What a run is started in: account, environment, visible devices, caps, container."""
