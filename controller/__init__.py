"""The decision process: caches, the quota pass, the binding hook and Queue status."""
