"""What admins say of devices and nodes, and what a look at the machine changes of it."""
