"""A view as one HTML page that needs nothing else: style and script are in it, and no other is allowed to run."""
