"""Card-seconds over time: what pods have used and waited for, derived from when they began and ended."""
