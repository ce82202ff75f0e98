"""The books of claims: what a pod wants, who is charged, what wakes whom."""

from typing import Any

import pytest

from core import reasons
from core.dra.amounts import thousandths
from core.dra.book import DeviceBook
from core.dra.booking import NO_EFFECT, Effect
from core.objects import Claim, ClaimTemplate, Queue
from core.settings import DraSettings
from core.stage import Stage
from tests.builders import a_pod, a_queue
from tests.builders.claims import ClaimBuilder, a_claim, a_template
from tests.builders.objects import PodBuilder, QueueBuilder

WAITING, RESERVED, ALLOCATED = Stage.WAITING, Stage.RESERVED, Stage.ALLOCATED


def limited(name: str, count: int, device_class: str = "gpu") -> QueueBuilder:
    return a_queue(name).devices({"capability": {device_class: {"count": count}}})


def gpus(name: str, count: int = 1) -> ClaimBuilder:
    return a_claim(name).exactly("r", "gpu", count=count)


def holding(pod: str, claim: str) -> PodBuilder:
    return a_pod(pod).claim("dev", name=claim)


def a_book(*objects: Queue | Claim | ClaimTemplate, **settings: Any) -> DeviceBook:
    book = DeviceBook(DraSettings.model_validate(settings))
    for each in objects:
        match each:
            case Queue():
                book.put_queue(each)
            case Claim():
                book.put_claim(each)
            case ClaimTemplate():
                book.put_template(each)
    return book


def counts(book: DeviceBook, queue: str) -> tuple[int, int, int]:
    """Waiting, reserved and allocated devices of the class `gpu`."""
    sums = (book.waiting(queue), book.reserved(queue), book.allocated(queue))
    found = [thousandths(each).get("deviceclass/gpu", 0) // 1000 for each in sums]
    return found[0], found[1], found[2]


def why(book: DeviceBook, pod: PodBuilder, queue: str = "q") -> tuple[str, str]:
    shortfall = book.shortfall(pod.view(), queue)
    return (shortfall.reason, shortfall.message) if shortfall is not None else ("", "")


# -- from a pod to its claims --------------------------------------------------------------------------------

TEMPLATED = a_pod("p").claim("dev", template="t")
GENERATED = TEMPLATED.generated_claim("dev", "p-dev-x")
TEMPLATE = a_template("t").exactly("r", "gpu", count=2).view()
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


# -- who is charged ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "expected"),
    [(WAITING, (2, 0, 0)), (RESERVED, (0, 2, 0)), (ALLOCATED, (0, 0, 2)), (Stage.IGNORED, (0, 0, 0))],
)
def test_a_claim_counts_by_the_stage_of_its_pod(stage: Stage, expected: tuple[int, int, int]) -> None:
    book = a_book(gpus("c", 2).view())
    book.put_pod(holding("p", "c").view(), stage, "q")
    assert counts(book, "q") == counts(book, "root") == expected
    book.drop_pod("uid-ml-p")
    assert list(book.queues()) == []
    assert book.drop_pod("uid-ml-p") == NO_EFFECT


def test_a_shared_claim_is_charged_once_until_its_last_pod_ends() -> None:
    book = a_book(gpus("c", 2).view())
    for name, stage in (("a", ALLOCATED), ("b", RESERVED), ("w", WAITING)):
        book.put_pod(holding(name, "c").view(), stage, "q")
    assert counts(book, "q") == (0, 0, 2)
    book.drop_pod("uid-ml-a")
    assert counts(book, "q") == (0, 2, 0)
    book.drop_pod("uid-ml-b")
    assert counts(book, "q") == (2, 0, 0)


def test_queues_that_share_a_claim_are_each_charged_and_the_queue_above_once() -> None:
    book = a_book(
        a_queue("left").child_of("team").view(),
        a_queue("right").child_of("team").view(),
        a_queue("team").view(),
        gpus("c", 2).view(),
        gpus("d", 3).view(),
    )
    book.put_pod(holding("a", "c").view(), ALLOCATED, "left")
    book.put_pod(holding("b", "c").view(), RESERVED, "right")
    book.put_pod(holding("e", "d").view(), RESERVED, "right")
    book.put_pod(holding("s", "d").view(), ALLOCATED, "team")
    assert counts(book, "left") == (0, 0, 2)
    assert counts(book, "right") == (0, 5, 0)
    assert counts(book, "team") == counts(book, "root") == (0, 0, 5)


@pytest.mark.parametrize(
    ("group", "api_version", "fits"),
    [
        ("g", "scheduling.k8s.io/v1alpha2", True),
        ("other", "scheduling.k8s.io/v1alpha2", False),
        ("g", "scheduling.volcano.sh/v1beta1", False),
    ],
)
def test_a_claim_that_is_made_once_for_a_group_is_shared_by_its_members(
    group: str, api_version: str, fits: bool
) -> None:
    claim = gpus("c").owned_by("PodGroup", group, api_version=api_version)
    book = a_book(limited("q", 1).view(), claim.view())
    for name in "ab":
        member = a_pod(name).claim("dev", template="t").generated_claim("dev", "c")
        member = member.put("spec", "schedulingGroup", "podGroupName", value="g")
        assert (why(book, member) == ("", "")) is fits
        book.put_pod(member.view(), RESERVED, "q")
    assert counts(book, "q") == (0, 1 if fits else 0, 0)


def test_a_second_pod_on_a_shared_claim_always_fits() -> None:
    book = a_book(limited("q", 2).view(), gpus("c", 2).view(), gpus("d").view())
    book.put_pod(holding("a", "c").view(), ALLOCATED, "q")
    assert why(book, holding("b", "c")) == ("", "")
    assert why(book, holding("b", "c").claim("two", name="d"))[1] == (
        "queue q: DeviceClass gpu quota exceeded: requested 1, used 2, limit 2"
    )
    assert why(book, holding("b", "d"), "unlimited") == ("", "")


def test_a_lift_that_is_tried_is_taken_back() -> None:
    book = a_book(limited("q", 2).view(), gpus("c", 2).view(), gpus("d").view())
    pod, other = holding("p", "c").view(), holding("o", "d")
    book.put_pod(pod, WAITING, "q")
    assert why(book, other) == ("", "")
    book.put_pod(pod, RESERVED, "q")
    assert why(book, other)[0] == reasons.INSUFFICIENT_DEVICE_QUOTA
    book.put_pod(pod, WAITING, "q")
    assert why(book, other) == ("", "")
    assert counts(book, "q") == (2, 0, 0)


def test_lowering_a_quota_evicts_nobody_and_blocks() -> None:
    book = a_book(limited("q", 3).view(), gpus("c", 2).view(), gpus("d").view())
    book.put_pod(holding("a", "c").view(), ALLOCATED, "q")
    book.put_queue(limited("q", 1).view())
    assert counts(book, "q") == (0, 0, 2)
    assert why(book, holding("b", "d"))[1].endswith("requested 1, used 2, limit 1")


def test_a_claim_that_is_made_anew_with_other_numbers_is_counted_anew() -> None:
    book = a_book(gpus("c", 2).view())
    book.put_pod(holding("a", "c").view(), ALLOCATED, "q")
    book.put_pod(holding("b", "c").view(), ALLOCATED, "other")
    book.drop_claim("ml/c")
    assert counts(book, "root") == (0, 0, 0)
    book.put_claim(gpus("c", 7).uid("again").view())
    assert counts(book, "q") == counts(book, "other") == counts(book, "root") == (0, 0, 7)


def test_an_allocation_narrows_the_charge() -> None:
    every = a_claim("c").exactly("r", "gpu", mode="All")
    book = a_book(every.view())
    book.put_pod(holding("a", "c").view(), ALLOCATED, "q")
    assert counts(book, "q") == (0, 0, 32)
    book.put_claim(every.allocated("r", "r").view())
    assert counts(book, "q") == (0, 0, 2)


# -- the hierarchy -------------------------------------------------------------------------------------------


def test_the_first_queue_from_the_leaf_up_that_is_exceeded_is_named() -> None:
    book = a_book(
        limited("root", 3).view(),
        limited("team", 2).view(),
        a_queue("leaf").child_of("team").view(),
        gpus("c", 2).view(),
        gpus("d").view(),
        gpus("e").view(),
    )
    book.put_pod(holding("a", "c").view(), ALLOCATED, "leaf")
    short = "DeviceClass gpu quota exceeded: requested 1, used 2, limit 2"
    assert why(book, holding("b", "d"), "leaf")[1] == f"queue team: {short} (queue leaf is below it)"
    assert why(book, holding("b", "d"), "team")[1] == f"queue team: {short}"
    assert why(book, holding("b", "d"), "else") == ("", "")
    book.put_pod(holding("b", "d").view(), RESERVED, "else")
    assert why(book, holding("x", "e"), "else")[1] == (
        "queue root: DeviceClass gpu quota exceeded: requested 1, used 3, limit 3 (queue else is below it)"
    )


def test_without_hierarchy_only_the_pods_own_queue_counts() -> None:
    queues = (
        limited("team", 1).view(),
        a_queue("leaf").child_of("team").view(),
        a_queue("lost").child_of("no").view(),
    )
    book = a_book(*queues, gpus("c", 2).view(), hierarchy=False)
    assert why(book, holding("a", "c"), "leaf") == ("", "")
    assert why(book, holding("a", "c"), "lost") == ("", "")
    book.put_pod(holding("a", "c").view(), ALLOCATED, "leaf")
    assert set(book.queues()) == {"leaf"}


def test_a_broken_chain_holds_its_own_pods_only() -> None:
    book = a_book(a_queue("lost").child_of("gone").view(), a_queue("fine").view(), gpus("c").view())
    book.put_pod(holding("a", "c").view(), WAITING, "lost")
    assert why(book, holding("a", "c"), "lost") == (
        reasons.QUEUE_HIERARCHY_BROKEN,
        "queue lost: the chain of its parents is broken: queue lost has the parent gone, which does not exist",
    )
    assert why(book, holding("a", "c"), "fine") == ("", "")
    assert "lost" in book.put_queue(a_queue("gone").view()).dirty
    assert why(book, holding("a", "c"), "lost") == ("", "")


def test_charges_follow_a_queue_that_gets_another_parent() -> None:
    leaf = a_queue("leaf").child_of("mid")
    book = a_book(
        a_queue("left").view(), a_queue("right").view(), a_queue("mid").child_of("left").view(), leaf.view(),
        gpus("c", 2).view(),
    )  # fmt: skip
    book.put_pod(holding("a", "c").view(), ALLOCATED, "leaf")
    assert counts(book, "left") == (0, 0, 2)
    effect = book.put_queue(a_queue("mid").child_of("right").view())
    assert effect.touched >= {"left", "right", "mid", "leaf"}
    assert (counts(book, "left"), counts(book, "right")) == ((0, 0, 0), (0, 0, 2))
    book.drop_queue("mid")
    assert (counts(book, "right"), counts(book, "root")) == ((0, 0, 0), (0, 0, 2))


def test_a_dimension_that_is_not_listed_is_denied_on_request() -> None:
    claim = a_claim("c").exactly("r", "gpu", capacity={"memory": "1Gi"}).view()
    for choice, reason in (("allow", ""), ("deny", reasons.INSUFFICIENT_DEVICE_QUOTA)):
        book = a_book(limited("q", 2).view(), claim, unlistedDimension=choice)
        assert why(book, holding("a", "c"))[0] == reason


def test_access_for_administration_is_counted_on_request() -> None:
    claim = a_claim("c").exactly("r", "gpu", count=2, admin=True).view()
    for choice, count in ((False, 0), (True, 2)):
        book = a_book(claim, countAdminAccess=choice)
        book.put_pod(holding("a", "c").view(), ALLOCATED, "q")
        assert counts(book, "q") == (0, 0, count)


def test_an_unreadable_quota_holds_what_is_new_and_keeps_what_runs() -> None:
    book = a_book(a_queue("q").devices({"oops": {}}).view(), gpus("c").view(), gpus("d").view())
    book.put_pod(holding("a", "c").view(), ALLOCATED, "q")
    assert why(book, holding("b", "d"))[0] == reasons.DEVICE_QUOTA_MALFORMED
    assert counts(book, "q") == (0, 0, 1)
    assert book.limits["q"].malformed.startswith("spec.dra[oops]: ")


# -- what wakes whom -----------------------------------------------------------------------------------------


@pytest.fixture
def book() -> DeviceBook:
    """Two queues below `team`, which limits; in each of them and in one elsewhere a pod waits."""
    book = a_book(
        limited("team", 2).view(),
        a_queue("left").child_of("team").view(),
        a_queue("right").child_of("team").view(),
        limited("else", 1).view(),
        *(gpus(name).view() for name in ("c", "w1", "w2", "w3")),
        a_claim("nic").exactly("r", "nic").view(),
    )
    for queue, claim in (("left", "w1"), ("right", "w2"), ("else", "w3")):
        book.put_pod(holding(f"waits-{queue}", claim).view(), WAITING, queue)
    return book


def test_a_new_waiting_pod_makes_its_queue_dirty(book: DeviceBook) -> None:
    effect = book.put_pod(holding("p", "c").view(), WAITING, "left")
    assert effect == Effect(touched=frozenset({"left", "team", "root"}), dirty=frozenset({"left"}))
    assert book.put_pod(holding("p", "c").view(), WAITING, "left") == NO_EFFECT


def test_devices_that_come_back_wake_all_below_the_queue_that_limits_them(book: DeviceBook) -> None:
    book.put_pod(holding("p", "c").view(), ALLOCATED, "left")
    assert book.drop_pod("uid-ml-p").dirty == {"left", "right"}
    book.put_pod(holding("n", "nic").view(), ALLOCATED, "left")
    assert book.drop_pod("uid-ml-n").dirty == frozenset()


def test_a_claim_that_another_pod_holds_now_costs_a_waiting_one_less(book: DeviceBook) -> None:
    assert book.put_pod(holding("p", "w2").view(), RESERVED, "left").dirty == {"right"}


def test_a_claim_that_its_holder_takes_to_another_queue_costs_less_there(book: DeviceBook) -> None:
    """The queue as a whole is no emptier for it, so nothing else would tell."""
    holder = holding("p", "w3").view()
    book.put_pod(holder, ALLOCATED, "left")
    book.put_pod(holding("full", "c").view(), ALLOCATED, "else")
    assert why(book, holding("waits-else", "w3"), "else")[0] == reasons.INSUFFICIENT_DEVICE_QUOTA
    assert "else" in book.put_pod(holder, ALLOCATED, "else").dirty
    assert why(book, holding("waits-else", "w3"), "else") == ("", "")


def test_a_claim_that_comes_below_a_queue_with_its_holder_costs_less_there(book: DeviceBook) -> None:
    book.put_pod(holding("p", "w2").view(), ALLOCATED, "else")
    book.put_pod(holding("a", "c").view(), ALLOCATED, "left")
    book.put_pod(holding("b", "w1").view(), ALLOCATED, "left")
    assert why(book, holding("waits-right", "w2"), "right")[0] == reasons.INSUFFICIENT_DEVICE_QUOTA
    assert "right" in book.put_queue(limited("else", 1).child_of("team").view()).dirty
    assert why(book, holding("waits-right", "w2"), "right") == ("", "")


def test_a_limit_that_changes_wakes_all_below(book: DeviceBook) -> None:
    assert book.put_queue(limited("team", 3).view()).dirty == {"left", "right"}
    assert book.put_queue(limited("team", 3).priority(4).view()) == NO_EFFECT
    assert book.put_queue(limited("root", 9).view()).dirty == {"left", "right", "else"}
    assert book.drop_queue("root").dirty == {"left", "right", "else"}


def test_a_write_to_a_queue_that_leaves_its_parent_alone_counts_no_pod_anew(
    book: DeviceBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schedulers write the status of the root about once a second, and every pod is below it."""

    def counted(*_: object) -> None:
        raise AssertionError("a pod is counted anew")

    monkeypatch.setattr("core.dra.book.wants_of", counted)
    assert book.put_queue(limited("team", 2).allocated({"cpu": "1"}).view()) == NO_EFFECT
    assert book.put_queue(limited("team", 1).view()).dirty == {"left", "right"}


def test_claims_and_templates_that_come_wake_the_pods_that_wait_for_them() -> None:
    book = a_book()
    book.put_pod(holding("p", "c").view(), WAITING, "q")
    book.put_pod(a_pod("t").claim("dev", template="t").view(), WAITING, "r")
    assert book.put_claim(gpus("c").view()).dirty == {"q"}
    assert book.put_claim(gpus("c").view()) == NO_EFFECT
    assert book.put_claim(gpus("c", 2).view()).dirty == {"q"}
    assert book.put_template(TEMPLATE).dirty == {"r"}
    assert book.put_template(TEMPLATE) == NO_EFFECT
    assert book.drop_template("ml/t").dirty == {"r"}
    assert book.put_claim(gpus("unused").view()) == NO_EFFECT


# -- what is shown -------------------------------------------------------------------------------------------


def test_status_shows_what_is_allocated_in_the_queue_and_below() -> None:
    book = a_book(
        a_queue("leaf").child_of("team").view(),
        a_queue("team").view(),
        a_claim("c").exactly("r", "gpu", count=2, capacity={"memory": "8Gi", "cores": "250m"}).view(),
        gpus("d").view(),
    )
    book.put_pod(holding("a", "c").view(), ALLOCATED, "leaf")
    book.put_pod(holding("b", "d").view(), RESERVED, "leaf")
    shown = {"deviceclass/gpu": "2", "memory.deviceclass/gpu": "17179869184", "cores.deviceclass/gpu": "500m"}
    assert book.published(a_queue("leaf").view()) == book.published(a_queue("team").view()) == shown
    assert book.published(a_queue("other").view()) == {}


def test_keys_that_the_scheduler_owns_are_left_to_it() -> None:
    book = a_book(gpus("c").view(), a_claim("n").exactly("r", "nic").view())
    book.put_pod(holding("a", "c").claim("two", name="n").view(), ALLOCATED, "q")
    fields: dict[str, Any] = {"f:status": {"f:allocated": {"f:deviceclass/gpu": {}}}}
    owned = a_queue("q").put(
        "metadata", "managedFields", value=[{"manager": "vc-scheduler", "fieldsV1": fields}]
    )
    assert book.published(owned.view()) == {"deviceclass/nic": "1"}


def test_the_share_is_that_of_the_fullest_limit() -> None:
    queue = a_queue("q").devices(
        {"capability": {"gpu": {"count": 4, "capacity": {"m": 4}}, "nic": {"count": 0}}}
    )
    book = a_book(queue.view(), a_claim("c").exactly("r", "gpu", capacity={"m": 3}).view())
    assert book.share("q") == 0
    book.put_pod(holding("a", "c").view(), RESERVED, "q")
    assert book.share("q") == 0.75
    assert book.share("unknown") == 0
