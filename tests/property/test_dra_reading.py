"""Devices under random input: no quota raises or opens, no claim costs too little, and amounts are read as written."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core import strictjson
from core.dra.amounts import DeviceKey, most, nano, render
from core.dra.carriers import device_limits_of, read_carriers
from core.dra.cost import cost_of
from core.quantity import parse
from tests.builders import a_queue
from tests.builders.claims import a_claim
from tests.property.device_ways import ways

KEYS = ("capability", "deserved", "guarantee", "count", "capacity", "gpu", "m", "a/b", "", "capabilty")
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["1", "1Gi", "80GB", "-1", ""]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values, st.text(max_size=20) | st.sampled_from(['{"capability": {}}', "{", "[]"]))
def test_no_stored_quota_makes_the_reader_raise_or_open_what_it_cannot_read(dra: Any, text: str) -> None:
    queue = replace(a_queue("q").annotation("volcano.sh/dra.quota", text).view(), spec_dra=dra)
    found = device_limits_of(queue)
    spec, annotation, _ = read_carriers(dra, text, {})
    assert bool(found.malformed) == bool(spec.malformed or annotation.malformed)
    assert found.malformed == "" or found.unreadable or found.closed
    if isinstance(dra, dict) and isinstance(dra.get("capability"), dict):
        for name, entry in dra["capability"].items():
            readable = isinstance(entry, dict) and DeviceKey(name) in spec.bounds["capability"]
            assert entry is None or readable or found.closes(name)


@given(st.lists(ways, max_size=4))
def test_a_claim_costs_at_least_what_each_outcome_costs(alternatives: list[Any]) -> None:
    named = [{**way, "name": f"w{number}"} for number, way in enumerate(alternatives)]
    claim = a_claim().first_available("r", *named).exactly("s", "gpu", mode="All", capacity={"m": 1})
    worst = cost_of(claim.view().requests, None, count_admin_access=False).amounts
    for number in range(len(named)):
        outcome = claim.allocated(f"r/w{number}", *["s"] * 5).view()
        cost = cost_of(outcome.requests, outcome.allocated, count_admin_access=False).amounts
        assert most([worst, cost]) == worst


@given(st.integers(0, 2**80))
def test_amounts_survive_being_written_down(amount: int) -> None:
    written = render(amount)
    if amount < nano(2**63 - 1):
        assert nano(parse(written)) == amount
    assert strictjson.loads(f'"{written}"') == written
