"""From a pod to its claims: what it wants, and what keeps it where one of them is missing or cannot be counted."""

from typing import Any

import pytest

from core import reasons
from tests.builders import a_pod
from tests.builders.claims import a_claim, a_template
from tests.builders.objects import PodBuilder
from tests.unit.core.dra.device_books import ALLOCATED, TEMPLATE, a_book, counts, gpus, holding, why

TEMPLATED = a_pod("p").claim("dev", template="t")


GENERATED = TEMPLATED.generated_claim("dev", "p-dev-x")


MADE = gpus("p-dev-x", 3).made_for("p").view()


FOREIGN = gpus("p-dev-x", 3).made_for("other").view()


UNCOUNTABLE = a_claim("c").exactly("good", "gpu").exactly("bad", "gpu", mode="Some").view()


WANTS: dict[str, tuple[PodBuilder, list[Any], int, tuple[str, str]]] = {
    "a named claim": (holding("p", "c"), [gpus("c", 2).view()], 2, ("", "")),
    "a named claim that is missing": (
        holding("p", "c"),
        [gpus("d").view(), a_claim("c", namespace="other").view()],
        0,
        (reasons.CLAIM_NOT_FOUND, "queue q: ResourceClaim ml/c does not exist"),
    ),
    "a claim that is made from a template": (GENERATED, [TEMPLATE, MADE], 3, ("", "")),
    "one that is not made yet": (TEMPLATED, [TEMPLATE], 2, ("", "")),
    "one that is there before the status names it": (TEMPLATED, [TEMPLATE, MADE], 2, ("", "")),
    "one whose template is missing": (
        TEMPLATED,
        [a_template("t", namespace="other").view()],
        0,
        (reasons.CLAIM_NOT_FOUND, "queue q: ResourceClaimTemplate ml/t does not exist"),
    ),
    "one whose template went after it was made": (GENERATED, [MADE], 3, ("", "")),
    "one that the status names before it is seen": (
        GENERATED,
        [TEMPLATE],
        2,
        (reasons.CLAIM_NOT_FOUND, "queue q: ResourceClaim ml/p-dev-x does not exist"),
    ),
    "one that was made for another pod": (
        GENERATED,
        [FOREIGN, TEMPLATE],
        2,
        (reasons.CLAIM_NOT_FOUND, "queue q: ResourceClaim ml/p-dev-x was not made for this pod"),
    ),
    "none was needed": (
        TEMPLATED.add("status", "resourceClaimStatuses", item={"name": "dev"}),
        [TEMPLATE],
        0,
        ("", ""),
    ),
    "one claim twice": (holding("p", "c").claim("again", name="c"), [gpus("c", 2).view()], 2, ("", "")),
    "several": (
        GENERATED.claim("one", name="c").claim("two", template="t"),
        [gpus("c", 5).view(), MADE, TEMPLATE],
        10,
        ("", ""),
    ),
    "what cannot be counted": (
        holding("p", "c"),
        [UNCOUNTABLE],
        1,
        (
            reasons.CLAIM_NOT_COMPUTABLE,
            'queue q: ResourceClaim ml/c cannot be counted: request bad has the allocation mode "Some", which is not known',
        ),
    ),
    "neither claim nor template": (
        a_pod("p").add("spec", "resourceClaims", item={"name": "dev"}),
        [],
        0,
        (reasons.CLAIM_NOT_FOUND, "queue q: resourceClaims entry dev names neither claim nor template"),
    ),
    "no claims at all": (a_pod("p"), [], 0, ("", "")),
}


@pytest.mark.parametrize(("pod", "objects", "count", "reason"), WANTS.values(), ids=WANTS)
def test_a_pod_wants_what_its_claims_ask_for(
    pod: PodBuilder, objects: list[Any], count: int, reason: tuple[str, str]
) -> None:
    book = a_book(*objects)
    book.put_pod(pod.view(), ALLOCATED, "q")
    assert counts(book, "q") == (0, 0, count)
    assert why(book, pod) == reason
