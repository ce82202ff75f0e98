"""What the leading controller has written down of usage over time."""

import argparse
from typing import TYPE_CHECKING

from cli import cluster
from cli.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from cli.state import State
    from core.usage.checkpoint import Checkpoint


class EmptyError(UnavailableError):
    """Nothing was written down yet."""


def written(options: argparse.Namespace) -> "tuple[Checkpoint, str]":
    """It and where it is, of the state or the live cluster that the arguments name. Raises CommandError."""
    state = cluster.usage(options)
    found = of_state(state)
    if found is None:
        why = "may not be read" if state.settings_hidden else "is not there"
        problem = f"ConfigMap cardquota-usage {why}; where Prometheus scrapes the controllers, --prometheus URL asks that"
        if options.state is not None:
            raise InputError(options.state, problem)
        raise UnavailableError(problem)
    return found


def of_state(state: "State") -> "tuple[Checkpoint, str] | None":
    """It and where it is; None where there is none. Raises CommandError for one that is empty or cannot be read."""
    from cli import installation
    from cli.kinds import CONFIG_MAP
    from core.objects import raw as read
    from core.usage.checkpoint import CheckpointError, decode

    for raw in state.complete.get(CONFIG_MAP, ()):
        if not installation.is_usage(raw):
            continue
        source = f"ConfigMap {installation.namespace_of(raw)}/{installation.USAGE_NAME}"
        try:
            found = decode(read.mapping(raw, "data"), read.mapping(raw, "binaryData"))
        except CheckpointError as error:
            raise UnavailableError(f"{source} cannot be read: {error}") from error
        if found is None:
            raise EmptyError(f"{source} is empty: no controller has led yet that writes it")
        return found, source
    return None
