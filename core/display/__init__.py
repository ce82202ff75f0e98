"""What people are shown of queues: their figures, their status, and what there is to say about them. Nothing is decided by it."""
