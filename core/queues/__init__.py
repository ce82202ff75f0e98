"""Queues: which one a pod charges, what it may use, what it uses, and how a shortage is said."""
