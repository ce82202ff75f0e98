"""The objects a command works on: from a file with `--state`, else from the live cluster."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cli import config, output
from cli.errors import UnavailableError

if TYPE_CHECKING:
    from cli.kinds import ObjectKind
    from cli.live import Reading
    from cli.state import State
    from core.objects import Pod
    from core.settings import Settings


_OTHERS: Final = "what others hold decides"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `read` goes by: where the objects come from, and `--config FILE`."""
    add_source(parser)
    config.add_argument(parser)


def add_source(parser: argparse.ArgumentParser) -> None:
    """`--state FILE`, and the way to a live cluster: `--kubeconfig FILE`, `--context NAME`."""
    add_state(parser, "cluster objects (YAML or JSON), - for standard input; default: the live cluster")
    add_live(parser)


def add_live(parser: argparse.ArgumentParser) -> None:
    """The way to a live cluster alone."""
    parser.add_argument("--kubeconfig", metavar="FILE", type=Path, help="the way to the live cluster")
    parser.add_argument("--context", metavar="NAME", help="the context in the kubeconfig")


def add_state(parser: argparse.ArgumentParser, text: str) -> None:
    """`--state FILE` alone, for commands that never ask a live cluster."""
    parser.add_argument("--state", metavar="FILE", help=text)


def read(options: argparse.Namespace, *, needs: Sequence["ObjectKind"] = ()) -> "tuple[Settings, State]":
    """The settings in force and the state that the arguments name, with what is new in a file created.

    `needs` are the kinds without which there is no answer. Raises CommandError.
    """
    from cli import live

    given = None if options.config is None else config.load(options.config)
    if options.state is not None:
        found = from_file(options.state)
        missing = [kind.kind for kind in needs if kind.kind in found.unseen]
        if missing:
            raise UnavailableError(
                f"{options.state} was written without the right to list {missing[0]}", live.RIGHTS
            )
        settings = given or settings_of(found)
        return settings, created(found, settings)
    found = _live(options, needs)
    return given or settings_of(found, live=True), found


def settings_of(state: "State", *, live: bool = False) -> "Settings":
    """The settings of the installation among the objects; what was used is said on standard error. Raises CommandError."""
    from cli import installation

    found = installation.found(state)
    if not found:
        if live:
            why = "may not be read" if state.settings_hidden else "are not there: nothing is installed"
            print(
                f"warning: the settings of this cluster {why}; defaults are used, --config FILE names others",
                file=sys.stderr,
            )
        return config.load(None)
    used = found[0]
    print(f"note: settings of {used.source}", file=sys.stderr)
    if len(found) > 1:
        others = ", ".join(one.source for one in found[1:])
        print(
            f"warning: there are several installations; not used: {others} (--config FILE names settings)",
            file=sys.stderr,
        )
    return config.of_text(used.source, used.settings)


def offline(options: argparse.Namespace) -> "tuple[Settings, State | None]":
    """The settings in force and the state as it stands, None without `--state`; for commands that need no cluster."""
    found = None if options.state is None else from_file(options.state)
    if options.config is not None or found is None:
        return config.load(options.config), found
    return settings_of(found), found


def created(state: "State", settings: "Settings") -> "State":
    """The state with what is new in it created; what admission would refuse goes to standard error. Raises InputError."""
    from cli.creation import as_created

    found = as_created(state.knowing(settings), settings)
    for key, why in found.refused.items():
        print(
            f"warning: pod {output.printable(key)} would be refused: {output.printable(why.message)}",
            file=sys.stderr,
        )
    return found


def from_file(name: str) -> "State":
    """The state in a file; what the reader should know about it goes to standard error. Raises InputError."""
    from cli import state

    found = state.load(name)
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if found.hidden:
        missing = output.printable(f"{name} was written without the right to list {found.hidden}")
        print(f"warning: {missing}: nothing is known of what others hold or wait for", file=sys.stderr)
    others = ", ".join(sorted(found.unseen - set(found.all_hidden)))
    if others:
        missing = output.printable(f"{name} was written without the right to list {others}")
        print(f"warning: {missing}: what depends on them is left out", file=sys.stderr)
    return found


def default_namespace(options: argparse.Namespace) -> str:
    """Where what names no namespace is: that of `-n`, or, as for kubectl, the one of the kubeconfig's context. Raises CommandError."""
    from cli import live

    given: str | None = getattr(options, "namespace", None)
    if given or options.state is not None:
        return given or "default"
    return live.namespace_of(options.kubeconfig, options.context)


def served(options: argparse.Namespace) -> "tuple[Settings, State | None]":
    """As `offline`, but without `--state` the settings are those of the live cluster."""
    if options.state is not None or options.config is not None:
        return offline(options)
    return settings_of(installed(options), live=True), None


def usage(options: argparse.Namespace) -> "State":
    """The state that the arguments name; of a live cluster nothing but the installation. Raises CommandError."""
    return installed(options) if options.state is None else from_file(options.state)


def installed(options: argparse.Namespace) -> "State":
    """Of the live cluster nothing but the installation. Raises UnavailableError."""
    from cli import live

    return _state(live.settings(options.kubeconfig, options.context))


def _live(options: argparse.Namespace, needs: Sequence["ObjectKind"]) -> "State":
    from cli import live

    reading = live.read(options.kubeconfig, options.context, getattr(options, "namespace", None))
    missing = [reading.forbidden[kind.kind] for kind in needs if kind.kind in reading.forbidden]
    if missing:
        raise UnavailableError(str(missing[0]), live.RIGHTS)
    for warning in live.warnings(reading):
        print(f"warning: {output.printable(warning)}", file=sys.stderr)
    return _state(reading)


def again(options: argparse.Namespace) -> "State":
    """The live cluster once more, without a word about rights: those were told. Raises UnavailableError."""
    from cli import live

    return _state(live.read(options.kubeconfig, options.context))


def _state(reading: "Reading") -> "State":
    from dataclasses import replace

    from cli import state
    from cli.kinds import CONFIG_MAP

    return replace(
        state.build(reading.objects, "cluster"),
        claims_served=reading.claims_served,
        kubernetes_groups_served=reading.kubernetes_groups_served,
        pods_of=reading.pods_of,
        home=reading.home,
        unled=reading.unled,
        unseen=reading.unseen,
        settings_hidden=CONFIG_MAP.kind in reading.forbidden,
    )


def reading(options: argparse.Namespace) -> "Reading":
    """The objects of the live cluster as they are; what is left out is said on standard error. Raises UnavailableError."""
    from cli import live

    found = live.read(options.kubeconfig, options.context)
    for warning in live.warnings(found):
        print(f"warning: {output.printable(warning)}", file=sys.stderr)
    return found


def demand_all(state: "State") -> None:
    """For what rests on everybody. Raises UnavailableError where not all nodes, queues and pods may be seen."""
    if state.hidden:
        raise _unknown(_OTHERS, state.hidden)


def demand(state: "State", settings: "Settings", pods: "Iterable[Pod]") -> None:
    """For what rests on these pods. Raises UnavailableError where not all may be seen that decides on them."""
    from cli.sight import Sight

    missing = Sight(state, settings).missing(pods)
    if missing:
        raise _unknown(_OTHERS if state.hidden else "what pods refer to decides", missing)


def demand_pods(state: "State") -> None:
    """For what shows who uses something. Raises UnavailableError where the pods of one namespace alone may be seen."""
    if state.pods_of:
        raise _unknown("what others hold counts", "Pod in all namespaces")


def _unknown(what: str, hidden: str) -> UnavailableError:
    from cli import live

    why = f"{what}, and without the right to list {hidden} it is not known"
    return UnavailableError(why, live.RIGHTS)
