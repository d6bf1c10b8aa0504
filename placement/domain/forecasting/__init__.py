"""When waiting jobs are expected to start, how far running ones are, and how good such words were."""
