"""What one pod has used and waited for, from its creation to its end, as pieces of time."""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from core.usage.sums import Series, What

Charge = tuple[tuple[Series, int], ...]
"""The cards of one pod in thousandths, by whom they are counted for."""


class Piece(NamedTuple):
    """A time in which one thing was used or waited for, in seconds since 1970; an open one goes on."""

    what: What
    charge: Charge
    start: int
    end: int | None = None


class Sight(NamedTuple):
    """A pod as it is seen now."""

    charge: Charge
    created: int
    scheduled: int
    """When it got its node; 0 for one that has none."""
    end: int | None
    """When it gave up or gave back its quota; None while it waits or uses it."""


Pieces = tuple[Piece, ...]


def followed(pieces: Pieces, sight: Sight, now: int, *, split: bool) -> Pieces:
    """The pieces after the pod was seen.

    Time comes from the pod, `now` only where its charge has changed: from now on the new one counts if `split`, else it counts
    from the beginning of the piece, for what the old one was made of had not been seen completely.
    """
    waited = tuple(takewhile(lambda piece: piece.what is What.WAITED, pieces))
    used = pieces[len(waited) :]
    if sight.scheduled and not used:
        charge = waited[-1].charge if waited and sight.end is not None else sight.charge
        first = waited or (Piece(What.WAITED, charge, sight.created),)
        return followed(
            (*cut(first, sight.scheduled), Piece(What.USED, charge, sight.scheduled)), sight, now, split=split
        )
    if not pieces:
        pieces = (Piece(What.WAITED, sight.charge, sight.created),)
    kept, phase = (waited, used) if used else ((), pieces)
    if sight.end is not None:
        # An end that was noted already stands, unless the pod shows an earlier one.
        noted = phase[-1].end
        end = sight.end if noted is None else min(noted, sight.end)
        return (*kept, *cut(phase, max(end, phase[0].start)))
    return (*kept, *_going_on(phase, sight.charge, now, split=split))


def goes_on(pieces: Pieces, sight: Sight, charge: Charge) -> bool:
    """Whether the last piece goes on as it is: what is seen of a pod most of the time, told without making any piece anew.

    `charge` is what the pod is counted for from now on.
    """
    last = pieces[-1]
    began = last.what is What.USED or not sight.scheduled
    return sight.end is None and last.end is None and began and last.charge == charge


def _going_on(phase: Pieces, charge: Charge, now: int, *, split: bool) -> Pieces:
    last = phase[-1]
    if last.charge == charge:
        return (*phase[:-1], last._replace(end=None))
    if not split:
        return (*phase[:-1], last._replace(charge=charge, end=None))
    return (*phase[:-1], last._replace(end=now), Piece(last.what, charge, now))


def cut(phase: Sequence[Piece], at: int) -> Pieces:
    """The pieces of one phase, ending at a moment, be it before or after their present end. The first one always stays."""
    kept = [piece for number, piece in enumerate(phase) if not number or piece.start < at]
    return (*kept[:-1], kept[-1]._replace(end=at))


class Phase(NamedTuple):
    """Where a pod stood when what it had used and waited for was written down; one of the two, or neither when it had ended."""

    waiting: bool
    using: bool


WAITING, USING, ENDED = Phase(True, False), Phase(False, True), Phase(False, False)


def counted(pieces: Pieces, phase: Phase, at: int) -> Pieces:
    """What was written down of a pod that stood there at that moment: of what went on then, all until that moment.

    An end that lies before that moment was not known then.
    """
    waited = tuple(takewhile(lambda piece: piece.what is What.WAITED, pieces))
    used = pieces[len(waited) :]
    if phase is WAITING:
        return cut(waited, at)
    if phase is USING:
        return (*waited, *cut(used, at)) if used else cut(waited, at)
    return (*pieces[:-1], pieces[-1]._replace(end=at)) if pieces[-1].end is None else pieces


def phase_at(pieces: Pieces, at: int) -> Phase:
    """Where a pod stood at a moment, as far as its pieces say."""
    if pieces[-1].end is not None and pieces[-1].end <= at:
        return ENDED
    begun = [piece.what for piece in pieces if piece.start < at]
    return USING if What.USED in begun else WAITING
