"""What a cycle sees, frozen: pools, devices, jobs, requests, and the words for them."""
