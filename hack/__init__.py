"""Programs for developers: the local control plane, and later the demo, the benchmarks and the release."""
