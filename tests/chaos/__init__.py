"""Random load under random faults on the real control plane, and a judge that knows nothing but the API server's audit log."""
