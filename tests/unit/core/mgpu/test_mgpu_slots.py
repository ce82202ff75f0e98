"""Cards as numbers: one difference says whether a share fits and what is left."""

from hypothesis import given
from hypothesis import strategies as st

from core.mgpu.slots import UNLIMITED, Load, Packing, Slot

AMOUNTS = st.sampled_from([0, 1, 2, 7, 8, 50, 100, 16_384])
LOADS = st.lists(st.builds(Load, st.just(1), AMOUNTS, AMOUNTS), min_size=1, max_size=3)


@given(st.lists(st.builds(Slot, AMOUNTS, AMOUNTS, st.integers(0, 4)), max_size=4), LOADS, st.booleans())
def test_a_number_is_as_good_as_its_slot(slots: list[Slot], loads: list[Load], limited: bool) -> None:
    if not limited:
        slots = [slot._replace(seats=UNLIMITED) for slot in slots]
    packing = Packing(slots, loads)
    assert [packing.unpacked(packing.slot(slot)) for slot in slots] == slots
    assert sorted(map(packing.slot, slots)) == [packing.slot(slot) for slot in sorted(slots)]
    for slot in slots:
        for load in loads:
            share, number = packing.share(load.core, load.memory), packing.slot(slot)
            fits = (number | packing.guard) - share & packing.guard == packing.guard
            assert fits is load.fits(slot)
            if fits:
                assert packing.unpacked(number - share) == load.left(slot)
