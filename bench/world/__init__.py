"""A simulated machine room: jobs with memory over time, devices, outsiders, and the policies that fill them."""
