"""What `make image` and `make lock` do."""
