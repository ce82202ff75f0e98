"""The parts of `hack.install`: rendering the chart and running what it would run in a cluster."""
