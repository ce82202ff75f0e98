"""Guards that are taken out one at a time, to see that a test notices: `python -m hack.mutants`."""
