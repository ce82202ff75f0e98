"""Claims and templates as they are read, in every version of the API, and what they cost."""

from fractions import Fraction
from typing import Any

import pytest

from core.dra.amounts import Amounts, DeviceKey, nano
from core.dra.cost import Cost, cost_of
from core.objects import Claim, ClaimTemplate, DeviceClass, claim, device_class
from tests.builders.claims import ClaimBuilder, a_claim, a_template, a_way, in_old_form

GI = 2**30


def cost(view: Claim | ClaimTemplate, *, count_admin_access: bool = False) -> Cost:
    allocated = view.allocated if isinstance(view, Claim) else None
    return cost_of(view.requests, allocated, count_admin_access=count_admin_access)


def amounts(**classes: dict[str, Any]) -> Amounts:
    """`amounts(gpu={"count": 2, "memory": 5})`, in units."""
    return {
        DeviceKey(name, "" if part == "count" else part): nano(Fraction(value))
        for name, parts in classes.items()
        for part, value in parts.items()
    }


BIG = 2**63 - 1
SMALL_OR_TWO_BIG = (
    a_way("big", name="one", count=1, capacity={"memory": "40Gi"}),
    a_way("small", name="many", count=4, capacity={"memory": "5Gi", "cores": 50}),
    a_way("small", name="few", count=2, capacity={"memory": "12Gi"}),
)

COSTS: dict[str, tuple[ClaimBuilder, Amounts]] = {
    "no request": (a_claim(), {}),
    "a count": (a_claim().exactly("r", "gpu", count=2), amounts(gpu={"count": 2})),
    "the mode that is the default": (
        a_claim().exactly("r", "gpu", count=2, mode="ExactCount"),
        amounts(gpu={"count": 2}),
    ),
    "a missing count is 1": (a_claim().exactly("r", "gpu"), amounts(gpu={"count": 1})),
    "a count of 0 is 1": (a_claim().exactly("r", "gpu", count=0), amounts(gpu={"count": 1})),
    "capacity is of each device": (
        a_claim().exactly("r", "gpu", count=2, capacity={"memory": "8Gi", "cores": "500m"}),
        amounts(gpu={"count": 2, "memory": 16 * GI, "cores": 1}),
    ),
    "as many as there can be": (
        a_claim().exactly("r", "gpu", count=BIG, capacity={"memory": BIG}),
        amounts(gpu={"count": BIG, "memory": BIG * BIG}),
    ),
    "requests add up, with and without capacity": (
        a_claim()
        .exactly("a", "gpu")
        .exactly("b", "gpu", capacity={"memory": 3})
        .exactly("c", "nic", count=5),
        amounts(gpu={"count": 2, "memory": 3}, nic={"count": 5}),
    ),
    "nothing of a dimension is no amount": (
        a_claim().exactly("r", "gpu", capacity={"memory": 0}),
        amounts(gpu={"count": 1}),
    ),
    "dimensions are told apart by their whole name": (
        a_claim().exactly("r", "gpu", capacity={"memory": 1, "gpu.example.com/memory": 2}),
        amounts(gpu={"count": 1, "memory": 1, "gpu.example.com/memory": 2}),
    ),
    "all devices are 32 until they are allocated": (
        a_claim().exactly("r", "gpu", mode="All", capacity={"memory": 2}),
        amounts(gpu={"count": 32, "memory": 64}),
    ),
    "then as many as were allocated": (
        a_claim().exactly("r", "gpu", mode="All", capacity={"memory": 2}).allocated("r", "other", "r", "r"),
        amounts(gpu={"count": 3, "memory": 6}),
    ),
    "an allocation that does not name the request changes nothing": (
        a_claim().exactly("r", "gpu", mode="All").allocated("other"),
        amounts(gpu={"count": 32}),
    ),
    "a number stays what was asked for, whatever is allocated": (
        a_claim().exactly("r", "gpu", count=2).allocated("r"),
        amounts(gpu={"count": 2}),
    ),
    "of alternatives the most that each class may cost": (
        a_claim().first_available("r", *SMALL_OR_TWO_BIG),
        amounts(big={"count": 1, "memory": 40 * GI}, small={"count": 4, "memory": 24 * GI, "cores": 200}),
    ),
    "then the one that was chosen": (
        a_claim().first_available("r", *SMALL_OR_TWO_BIG).allocated("r/few", "r/few"),
        amounts(small={"count": 2, "memory": 24 * GI}),
    ),
    "an alternative that takes all devices": (
        a_claim().first_available("r", a_way("gpu", name="a", mode="All"), a_way("gpu", name="b", count=40)),
        amounts(gpu={"count": 40}),
    ),
    "once chosen, as many as were allocated": (
        a_claim()
        .first_available("r", a_way("gpu", name="a", mode="All"), a_way("gpu", name="b", count=40))
        .allocated("r/a", "r/a"),
        amounts(gpu={"count": 2}),
    ),
    "an alternative beside a single request": (
        a_claim().first_available("r", a_way("gpu", name="a", count=3)).exactly("s", "gpu"),
        amounts(gpu={"count": 4}),
    ),
    "access for administration takes nothing away": (
        a_claim().exactly("r", "gpu", count=8, admin=True).exactly("s", "gpu", admin=False),
        amounts(gpu={"count": 1}),
    ),
}


@pytest.mark.parametrize(("built", "expected"), COSTS.values(), ids=COSTS)
def test_a_claim_costs_what_it_may_take(built: ClaimBuilder, expected: Amounts) -> None:
    assert cost(built.view()) == Cost(expected)


@pytest.mark.parametrize("built", [built for built, _ in COSTS.values()], ids=COSTS)
def test_every_served_version_means_the_same(built: ClaimBuilder) -> None:
    raw = built.build()
    assert claim.project(in_old_form(raw)) == claim.project({**raw, "apiVersion": "resource.k8s.io/v1beta2"})
    assert claim.project(in_old_form(raw)) == built.view()
    template = a_template().put("spec", "spec", value=raw["spec"]).build()
    expected = cost(built.put("status", value={}).view())
    assert cost(claim.project_template(template)) == expected
    assert cost(claim.project_template(in_old_form(template, "spec"))) == expected


def test_access_for_administration_is_charged_on_request() -> None:
    asking = a_claim().exactly("r", "gpu", count=8, admin=True, capacity={"memory": 1})
    assert cost(asking.view(), count_admin_access=True).amounts == amounts(gpu={"count": 8, "memory": 8})


FAULTS: dict[str, tuple[Any, str]] = {
    "neither form": ({"name": "r"}, "request r is neither exactly nor firstAvailable"),
    "both forms": (
        {"name": "r", "exactly": a_way("gpu"), "firstAvailable": [a_way("gpu", name="a")]},
        "request r is neither",
    ),
    "both forms, the old way": (
        {"name": "r", "deviceClassName": "gpu", "firstAvailable": [a_way("gpu", name="a")]},
        "request r is neither",
    ),
    "no alternatives": ({"name": "r", "firstAvailable": []}, "request r is neither"),
    "no object": ("r", "is neither"),
    "a mode of the future": (
        {"name": "r", "exactly": a_way("gpu", mode="Some")},
        'request r has the allocation mode "Some", which is not known',
    ),
    "no class": ({"name": "r", "exactly": {"count": 1}}, "request r names no DeviceClass"),
    "a text for a count": ({"name": "r", "exactly": a_way("gpu", count="2")}, 'has the count "2"'),
    "a negative count": ({"name": "r", "exactly": a_way("gpu", count=-2)}, "has the count -2"),
    "a truth for a count": ({"name": "r", "exactly": a_way("gpu", count=True)}, "has the count true"),
    "no quantity": (
        {"name": "r", "exactly": a_way("gpu", capacity={"memory": "80GB"})},
        'asks for "80GB" of "memory"',
    ),
    "a negative quantity": ({"name": "r", "exactly": a_way("gpu", capacity={"memory": -1})}, "asks for -1"),
    "one alternative of several": (
        {"name": "r", "firstAvailable": [a_way("gpu", name="a"), a_way("gpu", name="b", mode="Some")]},
        "request r/b has the allocation mode",
    ),
}


@pytest.mark.parametrize(("request_", "problem"), FAULTS.values(), ids=FAULTS)
def test_what_cannot_be_counted_is_said_and_the_rest_is_counted(request_: Any, problem: str) -> None:
    outcome = cost(a_claim().exactly("good", "nic", count=3).request(request_).view())
    assert problem in outcome.problem
    assert outcome.amounts[DeviceKey("nic")] == nano(3)


def test_requests_that_are_no_list_are_not_taken_for_none() -> None:
    broken = a_claim().put("spec", "devices", "requests", value={"name": "r"})
    assert cost(broken.view()).problem


def test_the_alternative_that_was_not_chosen_does_not_matter_any_more() -> None:
    mixed = a_claim().first_available("r", a_way("gpu", name="a"), a_way("gpu", name="b", mode="Some"))
    assert cost(mixed.view()).problem
    assert cost(mixed.allocated("r/a").view()) == Cost(amounts(gpu={"count": 1}))


def test_the_seeds_example_adds_up() -> None:
    """Three claims of one pod, as dra counts them per class."""
    claims = (
        a_claim().exactly("r", "nvidia-h100", count=2),
        a_claim().exactly("r", "hami-core-gpu", count=1, capacity={"cores": 30, "memory": "4Gi"}),
        a_claim().exactly("r", "hami-core-gpu", count=1, capacity={"cores": 20, "memory": "2Gi"}),
    )
    requests = [request for each in claims for request in each.view().requests]
    assert cost_of(requests, None, count_admin_access=False).amounts == amounts(
        **{"nvidia-h100": {"count": 2}, "hami-core-gpu": {"count": 2, "cores": 50, "memory": 6 * GI}}
    )


def test_owners_and_names_are_kept() -> None:
    view = a_claim("c").made_for("p").view()
    assert (view.key, view.owners, view.allocated) == ("ml/c", ("uid-ml-p",), None)
    assert claim.project({}).key == "default/"
    assert claim.project_template({"metadata": {"name": "t"}}).key == "default/t"
    assert device_class.project({"metadata": {"name": "gpu"}}) == DeviceClass("gpu")
