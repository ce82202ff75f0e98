"""`cardquota verify`: are the books right, and is the installation whole."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Final

from cli import cluster, output

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.inspection import Inspection
    from cli.state import State
    from cli.verdicts import Verdict

HELP = "are the books right, and is the installation whole"
DESCRIPTION = """\
Counts anew what the queues use, from the pods, and compares that with the status of the queues, with the records on the pods and
with the leader's own figures; and looks whether the installation is whole: webhooks and the authorities that the API server is told,
policies, what becomes of a pod with a card (a dry run: nothing is created), leader, versions. One line for each. Nothing is changed.

Needs the rights to read what it looks at, and to create pods in your namespace for the dry run; what it may not see it says. With
--state only status, records and the leader's figures that `cardquota dump` wrote down are compared with the pods.
"""
EPILOG = """\
examples:
  cardquota verify
  cardquota verify --state state.json      what is in a dump
  cardquota verify -o json

exit status:
  0  nothing is wrong, as far as could be seen      1  something is wrong; the lines say what
"""
_SETTLE_S: Final = 3.0
"""The status of a queue follows its pods by a moment."""
_WORDS: Final = {"ok": "ok", "wrong": "WRONG", "unknown": "unknown"}
_HEADER: Final = ("CHECK", "RESULT", "FOUND")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    output.add_argument(parser, "text", "json", "yaml")
    cluster.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints a line for each thing; 1 when one of them is wrong."""
    found = _offline(options) if options.state is not None else _live(options)
    if options.output != "text":
        output.print_document(options.output, {"checks": [_entry(verdict) for verdict in found]})
    else:
        rows = [(verdict.check, _WORDS[verdict.result], verdict.text) for verdict in found]
        print(output.table(_HEADER, rows))
    return 1 if any(verdict.result == "wrong" for verdict in found) else 0


def _entry(verdict: "Verdict") -> dict[str, str]:
    return {"check": verdict.check, "result": verdict.result, "found": verdict.text}


def _offline(options: argparse.Namespace) -> "list[Verdict]":
    """Of the state as it stands: what is new in it uses nothing yet."""
    from cli import leader_books, soundness
    from cli.sight import Sight

    settings, state = cluster.offline(options)
    assert state is not None
    sight = Sight(state, settings)
    return [*leader_books.of_state(state, soundness.figures(sight)), *soundness.of(state, sight)]


def _live(options: argparse.Namespace) -> "list[Verdict]":
    from cli import inspection, installation, soundness, wholeness
    from cli.sight import Sight

    settings, state = cluster.read(options)
    told = wholeness.of_state(state)
    home, leader = installation.home_of(state), installation.leader_of(state)
    found = inspection.read(options.kubeconfig, options.context, home, settings, leader)

    def books(found: "Inspection", state: "State") -> "list[Verdict]":
        sight = Sight(state, settings)
        return [*wholeness.books(found, soundness.figures(sight)), *soundness.of(state, sight)]

    def again() -> "list[Verdict]":
        state = cluster.again(options)
        return books(inspection.books(options.kubeconfig, options.context, home, leader), state)

    first = books(found, state)
    if any(verdict.result == "wrong" for verdict in first):
        first = _lasting(first, again)
    return [*told, *wholeness.of(found, settings), *first]


def _lasting(first: "list[Verdict]", again: "Callable[[], list[Verdict]]") -> "list[Verdict]":
    """What is still so a moment later."""
    from cli.verdicts import Verdict

    print(f"something differs; looking again in {_SETTLE_S:.0f} s", file=sys.stderr)
    time.sleep(_SETTLE_S)
    second = again()
    before = {(verdict.check, verdict.text) for verdict in first if verdict.result == "wrong"}
    lasting = [each for each in second if each.result != "wrong" or (each.check, each.text) in before]
    unsteady = dict.fromkeys(each.check for each in second).keys() - {each.check for each in lasting}
    return lasting + [
        Verdict(check, "unknown", "it changes all the time; try again") for check in sorted(unsteady)
    ]
