"""Shares of a card (mGPU): what a pod asks for, which nodes can serve it, on which cards."""
