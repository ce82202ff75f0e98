"""The judge sees who writes records, and who is bound without; and nothing where the controller did, or nobody could be asked."""

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


def test_a_record_that_somebody_else_writes_is_found_and_the_kubelet_is_not_blamed(log: Log) -> None:
    log.pod("p")
    log.through("p")
    log.annotate("p", SOMEBODY, **{terms.ASSIGNED: '{"A": 0}'})
    log.phase("p", "Succeeded")
    (found,) = log.verdict().violations
    assert (found.rule, found.about) == ("record", "ns/p")
    assert found.text == f"{terms.ASSIGNED} written by {SOMEBODY}"


def test_whoever_is_seen_to_write_a_record_has_no_excuse_by_what_the_log_lacks(log: Log) -> None:
    log.pod("p")
    log.through("p")
    began = log.now
    log.request("patch", "pods", "p", CONTROLLER, code=500)
    log.annotate("p", SOMEBODY, **{terms.ASSIGNED: '{"A": 0}'})
    assert log.rules(Disturbance(began, log.now, "killed", blind=True)) == ["record"]


def test_a_write_of_the_controller_that_was_not_answered_may_be_what_is_seen_later(log: Log) -> None:
    log.pod("p")
    log.through("p")
    log.request("patch", "pods", "p", CONTROLLER, code=504)
    log.change("pods", "p", lambda pod: pod["metadata"]["annotations"].update({terms.GANG: "2"}), seen=False)
    log.phase("p", "Succeeded")
    assert log.rules() == []


def test_a_pod_that_is_created_with_a_record_is_found(log: Log) -> None:
    log.pod("p", records={terms.GANG: "2"})
    assert log.rules() == ["record"]


def test_a_record_that_comes_from_nowhere_is_found_unless_the_log_lacks_writes(log: Log) -> None:
    log.pod("p")
    log.lift("p")
    log.change("pods", "p", lambda pod: pod["metadata"]["annotations"].pop(terms.ASSIGNED), seen=False)
    log.bind("p", "n")
    log.phase("p")
    assert "record" in log.rules()
    assert "record" not in log.rules(Disturbance(log.now - 1, log.now, "killed", blind=True))


def test_a_bind_without_record_is_found(log: Log) -> None:
    log.mgpu_node("m")
    log.share_pod("s", 10, "100")
    log.through("s", node="m")
    (found,) = log.verdict().violations
    assert found.rule == "bind"
    assert len(found.entries) == 3


def test_a_bind_of_a_card_without_a_record_of_it_is_found(log: Log) -> None:
    log.pod("p")
    log.lift("p")
    del log.annotations("p")[terms.ASSIGNED]
    log.bind("p", "n")
    log.phase("p")
    assert "bind" in log.rules()


@pytest.mark.parametrize("apart", [False, True])
def test_what_the_hook_grants_is_the_controllers_however_it_is_written(log: Log, apart: bool) -> None:
    log.mgpu_node("m")
    log.share_pod("s", 10, "100")
    log.lift("s")
    log.bind("s", "m", apart=apart, c="0")
    log.phase("s")
    assert log.rules() == []


@pytest.mark.parametrize("care", ["none", "repaired", "told", "late", "nobody leads", "ended", "gone"])
def test_a_bind_that_failed_open_has_to_be_repaired_or_told_by_a_leader(log: Log, care: str) -> None:
    log.mgpu_node("m")
    log.share_pod("s", 10, "100")
    log.lift("s")
    log.bind("s", "m", failed_open=True)
    log.phase("s")
    if care != "nobody leads":
        log.lead("next")
    if care == "late":
        log.lead("next", seconds=8)
    if care in ("repaired", "late"):
        log.annotate("s", CONTROLLER, **{f"{terms.INDEX_OF}c": "0"})
    if care == "told":
        log.tell("s")
    if care == "ended":
        log.phase("s", "Succeeded")
    if care == "gone":
        log.delete("s")
    log.lead("next", seconds=20) if care != "nobody leads" else log.wait(20)
    assert log.rules() == (["repair"] if care in ("none", "late") else [])
    assert log.verdict().covered["bound without record"] == 1


@pytest.mark.parametrize(("calm_s", "broken"), [(3, []), (8, ["repair"])])
def test_a_leader_has_its_time_for_a_repair_when_the_disturbance_is_over(
    log: Log, calm_s: float, broken: list[str]
) -> None:
    log.mgpu_node("m")
    log.share_pod("s", 10, "100")
    log.lift("s")
    log.bind("s", "m", failed_open=True)
    log.phase("s")
    began = log.now
    log.lead("next", seconds=30)
    assert log.rules(Disturbance(began - 1, log.now - calm_s, "stopped")) == broken


def test_a_pod_that_is_bound_at_the_gate_is_found(log: Log) -> None:
    log.pod("p")
    log.bind("p", "n")
    log.change("pods/status", "p", lambda pod: None, KUBELET)
    assert "bound while it waits at the gate" in [violation.text for violation in log.verdict().violations]
