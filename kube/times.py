"""Points in time as the API writes them."""

from datetime import UTC, datetime


def micro_time(moment: datetime) -> str:
    """A MicroTime: UTC with six decimals, whatever zone `moment` is in. Raises ValueError for one without a zone."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone names no moment")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
