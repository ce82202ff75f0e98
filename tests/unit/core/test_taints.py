"""Taints and tolerations as schedulers compare them, and what of a pod nobody here can judge."""

from typing import Any

import pytest

from core.objects import node, pod
from core.objects.taints import Taint, Toleration, taints_of, untolerated

DEDICATED = Taint("dedicated", "ml", "NoSchedule")
GONE = Taint("node.kubernetes.io/unreachable", "", "NoExecute")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("dedicated", "Equal", "ml", "NoSchedule"), True),
        (Toleration("dedicated", "", "ml", ""), True),
        (Toleration("dedicated", "Exists", "", ""), True),
        (Toleration("", "Exists", "", ""), True),
        (Toleration("dedicated", "Equal", "web", ""), False),
        (Toleration("dedicated", "Exists", "", "NoExecute"), False),
        (Toleration("other", "Exists", "", ""), False),
        (Toleration("dedicated", "Like", "ml", ""), False),
    ],
)
def test_what_a_toleration_is_about(toleration: Toleration, tolerated: bool) -> None:
    assert toleration.tolerates(DEDICATED) is tolerated
    assert untolerated((DEDICATED,), (toleration,)) == (None if tolerated else DEDICATED)


def test_the_first_taint_that_keeps_a_pod_out_is_named() -> None:
    assert untolerated((DEDICATED, GONE), (Toleration("dedicated", "Exists", "", ""),)) == GONE
    assert [str(taint) for taint in (DEDICATED, GONE)] == [
        "dedicated=ml:NoSchedule",
        "node.kubernetes.io/unreachable:NoExecute",
    ]


def test_taints_that_keep_nobody_out_and_garbage_are_left_out() -> None:
    taints = [{"key": "a", "effect": "PreferNoSchedule"}, 7, {"key": 3, "effect": "NoSchedule"}, {"key": "b"}]
    assert taints_of({"taints": taints}) == (Taint("", "", "NoSchedule"),)
    assert node.project({"spec": {"taints": None}}).taints == ()


SHARE = {"name": "c", "resources": {"limits": {"vke.volcengine.com/mgpu-core": "10"}}}


@pytest.mark.parametrize(
    ("spec", "elsewhere"),
    [
        ({}, False),
        ({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}}, True),
        ({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}}, True),
        ({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}}, False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, True),
        ({"topologySpreadConstraints": [{}]}, True),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}, None]}, False),
        ({"resourceClaims": [{"name": "x", "resourceClaimName": "y"}]}, True),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]}, True),
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, True),
        ({"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {}}, 5]}, False),
        ({"containers": [{**SHARE, "ports": [{"containerPort": 1, "hostPort": 1}]}]}, True),
        ({"containers": [{**SHARE, "ports": [{"containerPort": 1}, None]}]}, False),
        ({"containers": [SHARE, {"name": "d", "ports": [{"hostPort": 5}]}]}, True),
        ({"volumes": [{"name": "v", "ephemeral": {}}], "containers": [{"name": "c"}]}, False),
    ],
)
def test_what_nobody_here_can_judge_is_noted_of_pods_with_shares(
    spec: dict[str, Any], elsewhere: bool
) -> None:
    view = pod.project({"metadata": {"name": "p"}, "spec": {"containers": [SHARE], **spec}})
    assert view.ruled_elsewhere is elsewhere


def test_tolerations_are_kept_while_a_pod_with_shares_waits() -> None:
    spec = {"containers": [SHARE], "tolerations": [{"operator": "Exists"}]}
    asking = pod.project({"metadata": {"name": "p"}, "spec": spec})
    assert asking.tolerations == (Toleration("", "Exists", "", ""),)
    assert pod.project({"metadata": {"name": "p"}, "spec": spec}).tolerations is asking.tolerations
    assert pod.project({"metadata": {"name": "p"}, "spec": {**spec, "nodeName": "n"}}).tolerations == ()
