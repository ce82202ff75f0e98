"""Pages of the documentation that are made from tables of the code."""
