"""The judge sees what is wrong when nothing happens any more, and nothing where nothing is."""

from collections.abc import Callable

import pytest

from tests.chaos.checker import Disturbance, Terms, parse, terms
from tests.chaos.checker.history import History
from tests.chaos.checker.rest import AtRest
from tests.chaos.handmade import CONTROLLER, Log, Object


@pytest.fixture
def log() -> Log:
    """A queue of two cards, and a node of eight."""
    made = Log()
    made.lead()
    made.node("n")
    made.queue("q", A=2)
    return made


def rest(log: Log, **shown: int) -> list[str]:
    """What is broken after a while in which only status is written."""
    if shown:
        log.show("q", **shown)
    log.wait(10)
    log.census()
    return log.rules()


def test_a_world_at_rest_is_fine(log: Log) -> None:
    log.group("g", "q", 2)
    for name in ("g0", "g1"):
        log.pod(name, group="g")
    log.through("g0", "g1")
    log.pod("p")
    assert rest(log, A=2) == []
    covered = log.verdict().covered
    judged = {what: covered[f"at rest: {what}"] for what in ("judged", "pods that wait", "queues")}
    assert judged == {"judged": 1, "pods that wait": 1, "queues": 1}
    assert covered["at rest: pods that hold quota"] == 2
    assert covered["at rest: gangs that were let in"] == 1
    assert covered["at rest: gangs in part, excused or not"] == 0


def test_a_pod_that_waits_although_quota_is_free_is_found(log: Log) -> None:
    log.pod("p0")
    log.through("p0")
    log.pod("p1")
    assert rest(log, A=1) == ["starving"]


def test_who_leads_after_the_last_lists_is_not_waited_for(log: Log) -> None:
    log.pod("p")
    assert rest(log) == ["starving"]
    log.wait(30)
    log.lead("next")
    assert log.rules() == ["starving"]


def test_a_pod_may_wait_yet_where_somebody_has_only_just_gone(log: Log) -> None:
    for name in ("p0", "p1", "p2"):
        log.pod(name)
    log.through("p0", "p1")
    log.show("q", A=2)
    log.wait(10)
    log.delete("p1")
    log.wait(0.5)
    log.census()
    assert log.rules() == []


def test_what_kept_a_world_from_rest_is_told(log: Log) -> None:
    log.wait(60)
    log.pod("p", queue="nowhere")
    assert log.verdict().unrest == "the log has no list of everything at its end"
    log.wait(1)
    log.census()
    verdict = log.verdict()
    assert verdict.covered["at rest: judged"] == 0
    assert "s before the last lists: somebody: create pods ns/p (entry " in verdict.unrest
    log.wait(10)
    log.census()
    assert log.verdict().unrest == ""
    assert "the echo of a fault ended" in log.verdict(Disturbance(log.now - 9, log.now + 1)).unrest


def test_a_pod_waits_rightly_for_a_queue_above_a_card_that_nobody_has_or_a_group_that_is_not_there(
    log: Log,
) -> None:
    log.queue("above", A=0)
    log.queue("below", parent="above", A=5, B=5)
    log.pod("under", queue="below")
    log.pod("unknown", queue="below", card="B")
    log.pod("alone", group="nowhere")
    assert rest(log) == []


def test_a_choice_waits_rightly_without_stock_and_not_with_it(log: Log) -> None:
    log.queue("wide", A=20, B=20)
    log.pod("large", queue="wide", card="A|B", count=9)
    assert rest(log) == []
    log.node("b", card="B", cards=9)
    assert rest(log) == ["starving"]


def gate_of_others(pod: Object) -> None:
    pod["spec"]["schedulingGates"].append({"name": "example.com/theirs"})


def about_to_go(pod: Object) -> None:
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("how", [gate_of_others, about_to_go])
def test_who_waits_for_others_as_well_or_is_about_to_go_waits_rightly(
    log: Log, how: Callable[[Object], None]
) -> None:
    log.pod("p")
    log.change("pods", "p", how)
    assert rest(log) == []


def test_a_pod_of_a_queue_that_is_not_there_waits_rightly(log: Log) -> None:
    log.pod("p", queue="nowhere")
    log.claiming_pod("c", queue="nowhere")
    assert rest(log) == []


@pytest.mark.parametrize(
    "spec",
    [{"unschedulable": True}, {"taints": [{"key": "k", "effect": "NoSchedule"}]}, {}],
    ids=["cordoned", "tainted", "not ready"],
)
def test_a_node_that_takes_no_pods_has_no_room(log: Log, spec: Object) -> None:
    log.queue("wide", A=20, B=20)
    log.node("b", card="B", cards=9)
    log.mgpu_node("m")

    def closed(node: Object) -> None:
        node["spec"] |= spec
        node["status"]["conditions"] = [{"type": "Ready", "status": str(bool(spec))}]

    for node in ("b", "m"):
        log.change("nodes", node, closed)
    log.pod("large", queue="wide", card="A|B", count=9)
    log.share_pod("s", 30, "500")
    assert rest(log) == []


def test_what_is_on_its_way_takes_the_room_that_a_choice_would_need(log: Log) -> None:
    log.queue("wide", A=20, B=20)
    log.pod("first", queue="wide", count=2)
    log.lift("first", queue="wide")
    log.pod("second", queue="wide", card="A|B", count=7)
    assert rest(log) == []
    log.delete("first")
    log.wait(10)
    log.census()
    assert log.rules() == ["starving"]


@pytest.mark.parametrize("before", ["on its way", "without record"])
def test_shares_wait_rightly_while_nobody_can_say_what_is_free(log: Log, before: str) -> None:
    log.mgpu_node("m")
    log.share_pod("s0", 10, "100")
    log.lift("s0")
    if before == "without record":
        log.bind("s0", "m", failed_open=True)
        log.phase("s0")
    log.share_pod("s1", 10, "100")
    assert rest(log) == []


def test_pods_on_a_node_that_is_gone_are_no_rest(log: Log) -> None:
    log.pod("p")
    log.through("p", node="gone")
    log.pod("q")
    log.through("q")
    world = History(parse(log.lines)).end()
    assert [pod["metadata"]["name"] for pod, _ in AtRest(world, Terms()).orphans()] == ["p"]


def test_a_gang_waits_rightly_until_all_of_it_fits(log: Log) -> None:
    log.group("g", "q", 3)
    for number in range(3):
        log.pod(f"g{number}", group="g")
    assert rest(log) == []
    log.set_quota("q", A=3)
    assert rest(log) == ["starving"] * 3


def test_a_gang_of_which_too_few_have_come_waits_rightly(log: Log) -> None:
    log.set_quota("q", A=5)
    log.group("g", "q", 3)
    for number in range(2):
        log.pod(f"g{number}", group="g")
    assert rest(log) == []


@pytest.mark.parametrize(("memory", "broken"), [("900", []), ("500", ["starving"])])
def test_shares_wait_for_a_card_with_room(log: Log, memory: str, broken: list[str]) -> None:
    log.mgpu_node("m", cards=1, memory=1000)
    log.share_pod("s0", 30, "500")
    log.through("s0", node="m", c="0")
    log.share_pod("s1", 30, memory)
    assert rest(log) == broken


def test_a_gang_in_part_is_found_with_the_members_that_are_in(log: Log) -> None:
    log.group("g", "q", 3)
    for number in range(3):
        log.pod(f"g{number}", group="g")
    log.through("g0", "g1")
    assert rest(log, A=2) == ["gang"]


@pytest.mark.parametrize(
    ("queue", "quota", "broken"),
    [("q", {"A": 2}, []), ("q", {"A": 3, "B": 1}, ["gang"]), ("other", {"A": 0}, ["gang"])],
    ids=["cut", "not cut", "somebody else's"],
)
def test_a_gang_in_part_is_excused_when_its_own_quota_was_cut_meanwhile(
    log: Log, queue: str, quota: dict[str, int], broken: list[str]
) -> None:
    log.set_quota("q", A=3)
    log.queue("other", A=1)
    log.group("g", "q", 3)
    for number in range(3):
        log.pod(f"g{number}", group="g")
    log.through("g0", "g1")
    log.set_quota(queue, **quota)
    log.delete("g2")
    log.pod("g2", group="nowhere")
    assert rest(log, A=2) == broken


def test_a_gang_that_lost_a_member_waits_for_quota_rightly(log: Log) -> None:
    log.group("g", "q", 2)
    for number in range(3):
        log.pod(f"g{number}", group="g")
    log.through("g0", "g1")
    log.delete("g1")
    log.pod("other")
    log.through("other")
    assert rest(log, A=2) == []


def test_a_gang_of_two_on_record_is_whole_although_its_minimum_was_raised(log: Log) -> None:
    log.group("g", "q", 2)
    for number in range(3):
        log.pod(f"g{number}", group="g")
    log.through("g0", "g1")
    for name in ("g0", "g1"):
        log.annotate(name, CONTROLLER, **{terms.GANG: "2"})
    log.change("podgroups", "g", lambda group: group["spec"].update(minMember=3))
    assert rest(log, A=2) == []


@pytest.mark.parametrize(
    "shown", [{}, {"A": 1}, {"A": 2, "B": 1}], ids=["nothing", "too little", "what is not there"]
)
def test_a_status_that_is_not_true_is_found(log: Log, shown: dict[str, int]) -> None:
    log.queue("other", B=1)
    for name in ("p0", "p1"):
        log.pod(name)
    log.through("p0", "p1")
    assert rest(log, **shown) == ["status"]


def test_a_status_that_comes_late_is_found(log: Log) -> None:
    log.pod("p")
    log.through("p")
    log.wait(6)
    assert rest(log, A=1) == ["status"]


def test_status_of_a_queue_above_shows_what_is_below_it(log: Log) -> None:
    log.queue("below", parent="q", A=1)
    log.pod("p", queue="below")
    log.lift("p", queue="below")
    log.bind("p", "n")
    log.phase("p")
    log.show("below", A=1)
    assert rest(log) == ["status"]
    log.show("q", A=1)
    # The lists that come later are what is judged.
    assert [v.about for v in log.verdict().violations if "late" not in v.text] == []


def test_a_pod_that_nobody_deleted_is_missed(log: Log) -> None:
    log.pod("p")
    log.delete("p", seen=False)
    log.census()
    (found,) = log.verdict().violations
    assert (found.rule, found.about) == ("lost", "ns/p")
    assert log.rules(Disturbance(log.now - 1, log.now, "killed", blind=True)) == []


def test_a_pod_that_the_controller_deletes_is_found(log: Log) -> None:
    log.pod("p")
    log.delete("p", user=CONTROLLER)
    assert log.rules() == ["lost"]


def test_half_a_line_at_the_end_and_dry_runs_are_left_out(log: Log) -> None:
    log.pod("p")
    whole = len(parse(log.lines))
    line = log.lines[-1]
    assert len(parse([*log.lines, line[: len(line) // 2]])) == whole
    assert len(parse([*log.lines, line.replace('"/pods/p"', '"/pods/p?dryRun=All"')])) == whole


def test_writes_are_put_into_the_order_of_the_store_and_not_of_their_answers(log: Log) -> None:
    """An answer that comes late stands late in the log: the pod was gone before the next one was lifted."""
    for name in ("p0", "p1", "p2"):
        log.pod(name)
    log.lift("p0", "p1")
    log.delete("p0")
    log.lift("p2")
    late = log.lines.pop(-2)
    log.lines.append(late)
    assert log.rules() == []
