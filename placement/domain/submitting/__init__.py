"""What people ask for, read and checked whole before anything is stored."""
