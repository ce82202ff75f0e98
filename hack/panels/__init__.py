"""Draws the panels of the dashboards from what a Prometheus has, for people who have no Grafana at hand: as SVG, one file a panel."""
