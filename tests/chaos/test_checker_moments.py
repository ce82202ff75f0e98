"""The judge sees what is wrong at a moment, and nothing where nothing is."""

from collections.abc import Callable

import pytest

from tests.chaos.checker import Disturbance, terms
from tests.chaos.handmade import CONTROLLER, KUBELET, SOMEBODY, Log


@pytest.fixture
def log() -> Log:
    """A queue of two cards, and a node of eight."""
    made = Log()
    made.lead()
    made.node("n")
    made.queue("q", A=2)
    return made


def test_pods_that_pass_within_the_quota_are_fine(log: Log) -> None:
    for number in range(4):
        log.pod(f"p{number}")
    log.through("p0", "p1")
    log.phase("p0", "Succeeded")
    log.through("p2")
    log.delete("p1")
    log.through("p3")
    verdict = log.verdict()
    assert verdict.violations == ()
    assert verdict.covered["pods: past the gate"] == 4


def test_one_lift_more_than_the_quota_is_found_with_all_who_hold_it(log: Log) -> None:
    for name in ("p0", "p1", "p2"):
        log.pod(name)
    log.lift("p0", "p1", "p2")
    (found,) = log.verdict().violations
    assert (found.rule, found.about) == ("quota", "ns/p2")
    assert "is let use 3 of A, its quota is 2" in found.text
    assert found.entries == tuple(range(len(log.lines) - 2, len(log.lines) + 1))


def test_the_quota_of_a_queue_above_counts_all_below_it(log: Log) -> None:
    log.queue("above", A=1)
    log.queue("left", parent="above", A=5)
    log.queue("right", parent="above", A=5)
    for queue in ("left", "right"):
        log.pod(queue, queue=queue)
        log.lift(queue, queue=queue)
    (found,) = log.verdict().violations
    assert "queue above is let use 2 of A" in found.text


def test_a_card_that_the_queue_does_not_list_has_no_quota(log: Log) -> None:
    log.pod("p", card="B")
    log.lift("p", card="B")
    assert log.rules() == ["quota"]


def test_what_a_queue_says_of_shares_is_a_limit(log: Log) -> None:
    log.queue("shares", capability={terms.CORE: "50"})
    for name in ("s0", "s1"):
        log.share_pod(name, 30, "1k", queue="shares")
        log.lift(name, queue="shares")
    assert log.rules() == ["quota"]


def test_a_cut_that_the_leader_could_not_know_of_is_forgiven_for_a_moment_only(log: Log) -> None:
    for name in ("p0", "p1"):
        log.pod(name)
    log.lift("p0")
    log.set_quota("q", A=1)
    log.wait(1)
    log.lift("p1")
    assert log.rules() == []
    log.delete("p1")
    log.wait(10)
    log.pod("p2")
    log.lift("p2")
    assert log.rules() == ["quota"]
    assert log.rules(Disturbance(log.now - 12, log.now, "stopped")) == []


@pytest.mark.parametrize(("after_s", "broken"), [(5, []), (14, ["quota"])])
def test_a_new_leader_knows_of_a_cut_that_was_made_before_it_led_whatever_is_disturbed(
    log: Log, after_s: float, broken: list[str]
) -> None:
    """What is stored soon after it begins may be the former one's."""
    began = log.now
    for name in ("p0", "p1"):
        log.pod(name)
    log.lift("p0")
    log.set_quota("q", A=1)
    log.lead("next", seconds=after_s)
    log.lift("p1")
    assert log.rules(Disturbance(began, log.now, "stopped")) == broken
    forgiven = log.verdict(Disturbance(began, log.now, "stopped")).covered
    assert forgiven["let in, judged by an earlier quota"] == (0 if broken else 1)


def test_a_quota_that_was_cut_below_use_is_no_fault_and_nobody_may_follow(log: Log) -> None:
    for name in ("p0", "p1", "p2"):
        log.pod(name)
    log.lift("p0", "p1")
    log.set_quota("q", A=1)
    log.wait(10)
    assert log.rules() == []
    log.delete("p0")
    log.lift("p2")
    assert log.rules() == ["quota"]


def test_a_lift_that_the_log_lacks_still_counts(log: Log) -> None:
    for name in ("p0", "p1", "p2"):
        log.pod(name)
    log.lift("p0", "p1")
    log.lift("p2", seen=False)
    log.census()
    assert "quota" in log.rules(Disturbance(log.now - 1, log.now, "killed", blind=True))


def test_a_gate_that_somebody_else_takes_away_is_found(log: Log) -> None:
    log.pod("p")
    log.lift("p", user=SOMEBODY)
    assert "lift" in log.rules()


def test_a_lift_without_record_is_found(log: Log) -> None:
    log.pod("p")
    log.change("pods", "p", lambda pod: pod["spec"].pop("schedulingGates"), CONTROLLER)
    assert log.rules() == ["lift"]


@pytest.mark.parametrize("shown_by", ["kubelet", "list"])
def test_whoever_shows_a_lift_that_the_log_lacks_is_not_blamed_for_it(log: Log, shown_by: str) -> None:
    log.pod("p")
    log.lift("p", seen=False)
    if shown_by == "kubelet":
        log.phase("p", "Pending")
    else:
        log.census(["pods"])
    assert "lift" not in log.rules(Disturbance(log.now - 1, log.now, "killed", blind=True))


def test_a_pod_that_is_created_past_the_gate_is_found(log: Log) -> None:
    log.pod("p", gated=False)
    assert log.rules() == ["lift"]


def test_more_whole_cards_than_a_node_has_are_found(log: Log) -> None:
    log.queue("wide", A=20)
    for number in range(3):
        log.pod(f"p{number}", queue="wide", count=3)
        log.lift(f"p{number}", queue="wide")
        log.bind(f"p{number}", "n")
        log.phase(f"p{number}")
        log.change("pods/status", f"p{number}", lambda pod: None, KUBELET)
    (found,) = log.verdict().violations
    assert (found.rule, found.text) == ("card", "9 cards of node n are given away, it has 8")


@pytest.mark.parametrize(
    ("second", "broken"),
    [((40, "500"), []), ((41, "1"), ["card"]), ((1, "501"), ["card"])],
    ids=["just fits", "core", "memory"],
)
def test_a_card_that_is_given_away_twice_is_found(
    log: Log, second: tuple[int, str], broken: list[str]
) -> None:
    log.mgpu_node("m", cards=2, memory=1000)
    for name, (core, memory) in {"s0": (60, "500"), "s1": second}.items():
        log.share_pod(name, core, memory)
        log.through(name, node="m", c="1")
    assert log.rules() == broken


@pytest.mark.parametrize(("count", "broken"), [(16, []), (17, ["card"])])
def test_a_card_takes_sixteen_containers(log: Log, count: int, broken: list[str]) -> None:
    log.mgpu_node("m")
    for number in range(count):
        log.share_pod(f"s{number}", 5, "50")
        log.through(f"s{number}", node="m", c="0")
    assert log.rules() == broken


def test_a_container_on_two_cards_takes_half_of_what_it_asks_for_of_each(log: Log) -> None:
    log.mgpu_node("m", cards=2, memory=1000)
    log.share_pod("wide", 100, "1000")
    log.through("wide", node="m", c="0,1")
    log.share_pod("half", 50, "500")
    log.through("half", node="m", c="1")
    assert log.rules() == []
    log.share_pod("more", 51, "100")
    log.through("more", node="m", c="0")
    assert log.rules() == ["card"]


def test_a_repair_that_gives_a_card_away_twice_is_found(log: Log) -> None:
    log.mgpu_node("m", cards=2)
    for name in ("s0", "s1"):
        log.share_pod(name, 60, "500")
        log.lift(name)
    log.bind("s0", "m", c="0")
    log.bind("s1", "m", failed_open=True)
    for name in ("s0", "s1"):
        log.phase(name)
    log.annotate("s1", CONTROLLER, **{f"{terms.INDEX_OF}c": "0"})
    (found,) = log.verdict().violations
    assert (found.rule, found.about) == ("card", "ns/s1")


def test_of_a_node_that_is_not_known_nothing_is_said(log: Log) -> None:
    log.pod("p")
    log.through("p", node="gone")
    assert log.rules() == []


@pytest.mark.parametrize(
    "end",
    [
        lambda log, pod: log.delete(pod),
        lambda log, pod: log.delete(pod, revision=False),
        lambda log, pod: log.phase(pod, "Failed"),
    ],
    ids=["gone", "gone at a revision that is not shown", "ended"],
)
def test_a_card_is_free_again_when_its_pod_is_gone_or_has_ended(
    log: Log, end: Callable[[Log, str], None]
) -> None:
    log.mgpu_node("m")
    for name in ("s0", "s1"):
        log.share_pod(name, 60, "500")
        log.through(name, node="m", c="0")
        end(log, name)
    assert log.rules() == []


def test_until_it_is_gone_a_pod_has_its_card_also_where_its_deletion_shows_no_revision(log: Log) -> None:
    log.mgpu_node("m")
    for name in ("s0", "s1"):
        log.share_pod(name, 60, "500")
        log.through(name, node="m", c="0")
    log.delete("s0", revision=False)
    assert log.rules() == ["card"]


def test_cards_of_the_same_number_on_two_nodes_are_two_cards(log: Log) -> None:
    for node in ("m0", "m1"):
        log.mgpu_node(node)
        log.share_pod(f"on-{node}", 60, "500")
        log.through(f"on-{node}", node=node, c="0")
    assert log.rules() == []


def test_a_card_that_the_node_does_not_have_is_found(log: Log) -> None:
    log.mgpu_node("m", cards=2)
    log.share_pod("s", 10, "100")
    log.through("s", node="m", c="2")
    assert log.rules() == ["card"]


def test_what_was_covered_is_counted_by_transition_and_by_what_was_going_on(log: Log) -> None:
    began = log.now
    log.pod("p0")
    log.lift("p0")
    log.pod("p1")
    ended = log.now
    log.wait(1)
    log.bind("p0", "n")
    log.phase("p0")
    log.lift("p1")
    log.phase("p0", "Succeeded")
    log.delete("p1")
    covered = log.verdict(Disturbance(began, ended, "stop"), Disturbance(began, log.now, "slow")).covered
    assert covered["pods: nothing -> waiting"] == covered["pods: waiting -> reserved"] == 2
    for step in ("reserved -> running", "running -> succeeded", "reserved -> nothing"):
        assert covered[f"pods: {step}"] == 1
    assert covered["during stop: pods: past the gate"] == 1
    assert covered["during slow: pods: past the gate"] == 2
    assert covered["at rest: judged"] == 0
