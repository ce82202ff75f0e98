"""The main story on a real control plane: what a user applies, what the user sees, and a check of every claim."""
