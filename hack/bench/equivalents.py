"""The quota pass where every card is the same device as a DeviceClass, beside the same pass where none is."""

from collections.abc import Callable
from typing import Final

from core.settings import Settings
from hack.bench import samples
from hack.bench.clock import in_turns, settled
from hack.bench.effort import FULL, Effort
from hack.bench.quota import Case, Shape, filled
from hack.bench.report import Row

_FLOOR_IS: Final = "the same pass over the same queues and pods without cards.equivalents"
_SHAPES: Final = (Shape("no quota left", 0), Shape("quota for all", FULL.waiting, waits=False))


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """The pass where everybody waits for quota, and where nobody does. No claim is there: only the books are longer."""
    equivalents = {card: [f"{card.lower()}.dev"] for card in samples.PRODUCTS}
    linked = Settings.model_validate({"cards": {"equivalents": equivalents}})
    rows: list[Row] = []
    for shape in _SHAPES:
        progress(f"cards that are devices of a class, {shape.label}: building the ledgers")
        with_classes, without = Case(filled(shape, effort, linked)), Case(filled(shape, effort))
        with settled():
            found = in_turns(
                with_classes.full_pass, without.full_pass, rounds=effort.rounds, limit_s=effort.limit_s
            )
        rows.append(
            Row(
                benchmark="quota",
                what=f"full pass with equivalents, {shape.label}",
                figure=found.figure,
                floor=found.floor,
                ratio=found.ratio,
                unit="ms",
                floor_is=_FLOOR_IS,
            )
        )
    return rows
