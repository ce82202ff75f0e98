"""What a request says behind the question mark of its path."""

import math


def of_write(timeout_s: float, field_manager: str | None = None, dry_run: bool = False) -> dict[str, str]:
    """How long the server is to go on with a write, in whose name it is, and whether it is stored at all."""
    query = {"timeout": f"{math.ceil(1000 * timeout_s)}ms"}
    if field_manager:
        query["fieldManager"] = field_manager
    if dry_run:
        query["dryRun"] = "All"
    return query
