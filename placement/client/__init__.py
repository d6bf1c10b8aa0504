"""What is put on the path of a job: nothing here is imported by the service."""
