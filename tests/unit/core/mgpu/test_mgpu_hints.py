"""Admission warnings: said, and admitted all the same."""

import pytest

from core import names, reasons
from tests.builders import a_pod
from tests.unit.core.mgpu.judging import a_share, judged


@pytest.mark.parametrize(
    ("policy", "counts", "hints"),
    [
        (None, None, 0),
        ("fixed-share", None, 0),
        ("guaranteed-burst-share", None, 0),
        ("native-burst-share", None, 0),
        ("native-burst-share", "1", 0),
        ("Fixed-Share", None, 1),
        ("", None, 1),
        (None, "1", 1),
        ("fixed-share", "1", 1),
        ("else", "1", 2),
    ],
)
def test_compute_policies_are_only_warned_about(policy: str | None, counts: str | None, hints: int) -> None:
    """The set of policies is open; a pod whose policy matches nothing just fits nowhere."""
    pod = a_pod().mgpu(core=50, memory=1024)
    pod = pod if policy is None else pod.mgpu_policy(policy)
    pod = pod if counts is None else pod.annotation(names.MGPU_MULTIPLE_ANNOTATION, counts)
    found = judged(pod)
    assert found.violations == []
    assert [hint.code for hint in found.hints] == [reasons.MGPU_POLICY] * hints
    assert all("\n" not in str(hint) for hint in found.hints)


@pytest.mark.parametrize(
    ("memory", "warned"),
    [
        ("1048576", False),
        ("1048577", True),
        ("1Gi", True),
        ("1Ki", True),
        ("6k", False),
        ("1M", False),
        ("2M", True),
    ],
)
def test_memory_that_looks_like_bytes(memory: str, warned: bool) -> None:
    """`1Gi` of a resource that counts MiB is 2**30 MiB: admitted, with a warning."""
    found = judged(a_share(50, memory))
    assert found.violations == []
    assert ["mgpu-memory counts MiB" in hint.detail for hint in found.hints] == [True] * warned
    path = f"spec.containers[0].resources.limits[{names.MGPU_MEMORY}]"
    assert [(hint.code, hint.path) for hint in found.hints] == [(reasons.MGPU_MEMORY, path)] * warned
