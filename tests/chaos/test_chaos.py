"""The whole: on a real API server, with our processes, their faults, and its audit log."""

from collections.abc import Callable, Mapping

import pytest

from hack.controlplane import wait_for
from tests.apiserver.cluster import Cluster
from tests.apiserver.manifests import card_pod, queue
from tests.chaos.load import NAMESPACE
from tests.chaos.plan import draw
from tests.chaos.run import Bed, Outcome, carry_out, take_census

pytestmark = pytest.mark.apiserver

SEED, SECONDS = 1, 150.0
LINE_SECONDS = 45.0
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


def test_the_judge_finds_nothing_in_a_real_log_until_somebody_takes_a_gate_away(
    progress: Callable[[str], None],
) -> None:
    """Ten pods on a quota of three. Then the policies are taken away, and a fourth pod is forced past its gate."""
    with Bed.made(progress) as bed:
        cluster = Cluster(bed.plane, NAMESPACE)
        path = cluster.create_queue(queue("three", '{"A": 3}'))
        cluster.create(*(card_pod(f"p{number}", "A", "three") for number in range(10)))
        wait_for("three run", lambda: len(cluster.running()) == 3)
        cluster.wait_allocated(path, {"A": 3})
        verdict = take_census(bed)
        assert verdict.violations == ()
        assert verdict.covered["pods: past the gate"] == 3
        assert verdict.covered["pods: bound"] == 3

        for binding in bed.plane.api.get(_BINDINGS).expect()["items"]:
            bed.plane.api.delete(f"{_BINDINGS}/{binding['metadata']['name']}").expect()
        forced = min(cluster.gated())
        patch = {"spec": {"schedulingGates": None}}
        wait_for(
            "the gate can be taken", lambda: bed.plane.api.patch(cluster.path(forced), patch).status == 200
        )
        found = {(violation.rule, violation.about) for violation in take_census(bed).violations}
    assert found >= {("lift", f"{NAMESPACE}/{forced}"), ("quota", f"{NAMESPACE}/{forced}")}


@pytest.mark.timeout(600)
def test_without_faults_nobody_is_passed_by_in_line(progress: Callable[[str], None]) -> None:
    """While something is disturbed the judge cannot tell who was passed by from whose lift has been lost."""
    # Judged within the bed: what is found wrong leaves its logs, and they are all that shows why.
    with Bed.made(progress) as bed:
        covered = _nothing_broken(carry_out(bed, draw(SEED, LINE_SECONDS, {}), progress))
        assert covered["at rest: judged"] == 1
        assert covered["let in by their order"] > 8
        assert covered["pods: past the gate with claims"] > 4


@pytest.mark.timeout(1200)
def test_no_fault_breaks_a_promise(progress: Callable[[str], None]) -> None:
    """`make chaos SEED=1 MINUTES=2.5`. The processes do what they do in their own time: no two runs are the same."""
    with Bed.made(progress) as bed:
        outcome = carry_out(bed, draw(SEED, SECONDS), progress)
        covered = _nothing_broken(outcome)
        assert covered["pods: past the gate"] > 50
        assert covered["pods: gone"] > 20
        assert covered["pods: past the gate with claims"] > 10
        assert covered["terms of leaders"] > 1
        assert covered["at rest: judged"] == 1
        for what, least in (("fault: ", 10), ("clock: ", 5)):
            assert sum(count for done, count in outcome.done.items() if done.startswith(what)) > least


def _nothing_broken(outcome: Outcome) -> Mapping[str, int]:
    """What was covered; it fails where something is open or broken."""
    assert not outcome.unrest, "\n".join(outcome.unrest)
    assert not outcome.verdict.violations, "\n".join(map(str, outcome.verdict.violations))
    return outcome.verdict.covered
