"""A trace followed twice: by the real service with processes that hold simulated memory, and by the replay."""
