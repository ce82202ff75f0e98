"""What the annotations of a gang say, and which pods are one gang by them."""

import pytest

from core.names import GANG_OF_ANNOTATION
from core.objects.group import MOST_MEMBERS, name_problem, size_problem
from tests.builders import a_pod
from tests.builders.pods import PodBuilder

LEADER_WORKERS = "leaderworkerset.sigs.k8s.io/group-key"


def pod(name: str = "p", *, namespace: str = "ml") -> PodBuilder:
    return a_pod(name, namespace=namespace).gpu(1).card("A").gated()


@pytest.mark.parametrize("text", ["1", "2", "64", str(MOST_MEMBERS)])
def test_a_size_is_a_whole_number_in_plain_digits(text: str) -> None:
    assert size_problem(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "-1", "+3", " 4", "4 ", "04", "4.0", "4e0", "0x4", "1_0", "four"),
        *("\u0664", "\uff14", "\u00b2"),
        *(str(MOST_MEMBERS + 1), "1000000", "9" * 5000),
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert "must be a whole number from 1 to" in size_problem(text)


@pytest.mark.parametrize("text", ["a", "7", "train-1", "a.b_c", "A" * 63])
def test_a_name_is_a_label_value(text: str) -> None:
    assert name_problem(text) == ""


@pytest.mark.parametrize("text", ["", "-a", "a-", "a b", "a/b", "a|b", "\u200b", "\u00e9", "a" * 64, "a\n"])
def test_anything_else_is_no_name(text: str) -> None:
    assert "must be 1 to 63 letters" in name_problem(text)


ONE = pod("a").in_gang("train", 4, owner="j")


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (pod("b").in_gang("train", 4, owner="j"), True),
        (pod("b").in_gang("train", 6, owner="j"), True),
        (pod("b").in_gang("train", 4, owner="k"), False),
        (pod("b").in_gang("other", 4, owner="j"), False),
        (pod("b").in_gang("train", 4), False),
        (pod("b", namespace="other").in_gang("train", 4, owner="j"), False),
        (pod("b").in_gang("train", 4, owner="j").in_group("train"), False),
        (pod("b").in_gang("train", 4, owner="j").label(LEADER_WORKERS, "k1"), False),
    ],
)
def test_one_gang_is_one_name_in_one_namespace_under_one_owner(other: PodBuilder, same: bool) -> None:
    assert (ONE.view().group_key == other.view().group_key) is same
    assert other.view().group_key


def test_pods_without_owner_are_one_gang_by_the_name_alone() -> None:
    assert pod("a").in_gang("g", 2).view().group_key == pod("b").in_gang("g", 2).view().group_key


def test_a_leader_and_its_workers_are_one_gang_whoever_owns_them() -> None:
    """Their StatefulSets differ; replicas of the set differ in the label."""
    leader = pod("s-0").in_gang("serve", 3, owner="s").label(LEADER_WORKERS, "k1")
    worker = pod("s-0-1").in_gang("serve", 3, owner="s-0").label(LEADER_WORKERS, "k1")
    of_another = pod("s-1-1").in_gang("serve", 3, owner="s-1").label(LEADER_WORKERS, "k2")
    keys = [each.view().group_key for each in (leader, worker, of_another)]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    "alone",
    [
        pod().annotation("cardquota.io/gang-name", "g"),
        pod().annotation("cardquota.io/gang-size", "4"),
        pod().in_gang("g", "0"),
        pod().in_gang("g g", "4"),
        a_pod("p", namespace="ml").in_gang("g", 4),
    ],
)
def test_half_a_name_one_that_cannot_be_read_and_a_pod_that_asks_for_nothing_are_no_members(
    alone: PodBuilder,
) -> None:
    assert alone.view().group_key == ""


def test_a_member_stays_one_when_it_is_let_in_and_has_ended() -> None:
    let_in = a_pod("p", namespace="ml").charged("q").in_gang("g", 4).recorded_in_gang()
    let_in = let_in.put("spec", "schedulingGates", value=[])
    assert let_in.view().group_key == pod().in_gang("g", 4).view().group_key
    assert let_in.phase("Succeeded").view().group_key == let_in.view().group_key
    waiting = pod().in_gang("g", 4).view()
    assert waiting.ungated({}).group_key == waiting.group_key


@pytest.mark.parametrize("record", [None, "", "ml/other|uid", "ai/g|uid", "g", "ml/g"])
def test_who_was_let_in_without_a_gang_of_its_name_on_record_is_in_none(record: str | None) -> None:
    """By a version before, or as a member of a PodGroup."""
    let_in = a_pod("p", namespace="ml").charged("q").in_gang("g", 4)
    if record is not None:
        let_in = let_in.annotation(GANG_OF_ANNOTATION, record)
    assert let_in.view().group_key == ""


def test_a_podgroup_that_somebody_named_wins_and_one_that_volcano_makes_for_any_owner_does_not() -> None:
    """Volcano's controllers give each pod that has no PodGroup one of its owner, or of its own, with a minimum of one."""
    member = pod("a").in_gang("g", 4, owner="j")
    assert member.in_group("mine").view().group_key == "ml/mine"
    uid = member.build()["metadata"]["ownerReferences"][0]["uid"]
    assert member.in_group(f"podgroup-{uid}").view().group_key == member.view().group_key
    lone = pod("b").in_gang("g", 4).uid("7")
    assert lone.in_group("podgroup-7").view().group_key == lone.view().group_key
