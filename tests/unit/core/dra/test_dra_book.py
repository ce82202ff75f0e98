"""The books of claims: who is charged, through the tree of queues, and whom a quota keeps out."""

import pytest

from core import reasons
from core.dra.booking import NO_EFFECT
from core.stage import Stage
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.objects import PodBuilder
from tests.unit.core.dra.device_books import (
    ALLOCATED,
    RESERVED,
    WAITING,
    a_book,
    asked,
    counts,
    gpus,
    holding,
    limited,
    why,
)

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
    assert list(book.accounts.queues()) == []
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
    book.put_pod(asked("a", "c", 2).bound_to("n").view(), ALLOCATED, "q")
    assert why(book, holding("b", "c")) == ("", "")
    assert why(book, holding("b", "c").claim("two", name="d"))[1] == (
        "queue q: DeviceClass gpu quota exceeded: requested 1, used 2, limit 2"
    )
    assert why(book, holding("b", "d"), "unlimited") == ("", "")


@pytest.mark.parametrize(
    ("holder", "stage", "free"),
    [
        (holding("a", "c").bound_to("n"), ALLOCATED, False),
        (holding("a", "c"), RESERVED, False),
        (asked("a", "c", 4, unasked=True).bound_to("n"), ALLOCATED, False),
        (asked("a", "d", 4).bound_to("n").claim("two", name="c"), ALLOCATED, False),
        (holding("a", "c").charged("q").bound_to("n"), ALLOCATED, False),
        (holding("a", "c").charged("q"), RESERVED, True),
        (asked("a", "c", 4), RESERVED, True),
        (asked("a", "c", 4).bound_to("n"), ALLOCATED, True),
    ],
    ids=[
        "came with its node",
        "lost its gate",
        "put on record as it ran",
        "has another one on record",
        "runs since an earlier version",
        "let in by an earlier version",
        "let in",
        "bound after that",
    ],
)
def test_a_shared_claim_is_free_where_quota_was_asked_for_it(
    holder: PodBuilder, stage: Stage, *, free: bool
) -> None:
    """Else it is asked for in full, beside what is used without it: who runs within the quota keeps nobody back."""
    book = a_book(limited("q", 3).view(), gpus("c", 4).view(), gpus("d").view())
    book.put_pod(holder.view(), stage, "q")
    never = "requested 4, used {}, limit 3, more than the whole quota; ask for less, or raise it"
    others = 0 if "d" not in [claim for _, claim, _ in holder.view().claims] else 4
    refused = f"queue q: DeviceClass gpu quota exceeded: {never.format(others and 1)}"
    assert why(book, holding("b", "c")) == (
        ("", "") if free else (reasons.INSUFFICIENT_DEVICE_QUOTA, refused)
    )
    book.put_queue(limited("q", 5).view())
    assert why(book, holding("b", "c")) == ("", "")


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
    assert set(book.accounts.queues()) == {"leaf"}


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
