"""What `--state` reads: any stream of objects, completed the same way each time."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli import state
from cli.errors import InputError
from cli.kinds import CLAIM, JOB, NODE, POD, QUEUE
from cli.state import State


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}}


def queue(name: str, **metadata: Any) -> dict[str, Any]:
    version = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": version, "kind": "Queue", "metadata": {"name": name, **metadata}}


def as_yaml(*objects: Any) -> bytes:
    return yaml.safe_dump_all(objects).encode()


def as_json(*objects: Any) -> bytes:
    return "\n".join(map(json.dumps, objects)).encode()


def parse(*objects: Any) -> State:
    """The state of the objects; the same whether they come as YAML, as JSON values or as one List."""
    found = state.parse("f", as_yaml(*objects))
    assert state.parse("f", as_json(*objects)) == found
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    assert state.parse("f", json.dumps(listed).encode()) == found
    return found


@pytest.mark.parametrize("content", [b"", b"\n", b"---\n", b"null", b"\xef\xbb\xbf", b"# nothing"])
def test_nothing_is_an_empty_cluster(content: bytes) -> None:
    assert state.parse("f", content) == State()


@pytest.mark.parametrize(
    ("version", "kind", "field"),
    [
        ("v1", "Node", "nodes"),
        ("v1", "Namespace", "namespaces"),
        ("v1", "Pod", "pods"),
        ("scheduling.volcano.sh/v1beta1", "Queue", "queues"),
        ("scheduling.volcano.sh/v1", "Queue", "queues"),
        ("scheduling.volcano.sh/v1beta1", "PodGroup", "groups"),
        ("batch.volcano.sh/v1alpha1", "Job", "jobs"),
        ("resource.k8s.io/v1", "DeviceClass", "device_classes"),
        ("resource.k8s.io/v1beta2", "DeviceClass", "device_classes"),
    ],
)
def test_each_kind_is_read_in_any_version(version: str, kind: str, field: str) -> None:
    found = parse({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}})
    assert len(getattr(found, field)) == 1


def test_claims_are_kept_raw() -> None:
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "x"}}
    assert parse(claim).raw == {CLAIM: {"default/x": claim}}


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("example.com/v1", "Job"),
        ("apps/v1", "ControllerRevision"),
        ("example.com/v1", "Queue"),
        ("v1", "Queue"),
        ("v1", "Event"),
    ],
)
def test_other_kinds_are_skipped_whatever_they_hold(version: str, kind: str) -> None:
    assert parse({"apiVersion": version, "kind": kind, "spec": 3}) == State()


def test_lists_may_nest_and_typed_ones_need_not_repeat_the_kind() -> None:
    inner = {
        "apiVersion": "v1",
        "kind": "PodList",
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    }
    version = "scheduling.volcano.sh/v1beta1"
    queues = {"apiVersion": version, "kind": "QueueList", "items": [{"metadata": {"name": "q"}}]}
    empty = {"apiVersion": "v1", "kind": "List", "items": None}
    found = parse({"apiVersion": "v1", "kind": "List", "items": [inner, queues, empty]})
    assert [one.key for one in found.pods] == ["default/a", "default/b"]
    assert [one.name for one in found.queues] == ["q"]


def test_a_missing_namespace_is_default_and_a_missing_uid_is_made_from_the_name() -> None:
    found = parse(pod("a"), pod("a", namespace="ml"), pod("b", uid="u-1"), queue("q"))
    assert [one.key for one in found.pods] == ["default/a", "ml/a", "default/b"]
    assert [one.uid for one in found.pods] == ["pod/default/a", "pod/ml/a", "u-1"]
    assert found.queues[0].uid == "queue/q"


def test_raw_objects_stay_as_they_stood() -> None:
    assert parse(pod("a"), queue("q")).raw == {POD: {"default/a": pod("a")}, QUEUE: {"q": queue("q")}}


def test_complete_objects_are_what_an_api_server_would_show() -> None:
    (complete,) = parse(pod("a")).complete[POD]
    assert complete["metadata"]["namespace"] == "default"
    assert complete["metadata"]["uid"] == "pod/default/a"
    assert complete["metadata"]["creationTimestamp"].startswith("1970-")
    (node,) = parse({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}).complete[NODE]
    assert "namespace" not in node["metadata"]


def test_a_byte_order_mark_is_no_content() -> None:
    assert len(state.parse("f", b"\xef\xbb\xbf" + as_json(pod("a"), pod("b"))).pods) == 2


def test_undated_objects_are_the_youngest_in_the_order_of_the_file() -> None:
    dated = pod("old", creationTimestamp="2026-01-02T03:04:05Z")
    found = parse(pod("z"), dated, pod("a"), pod("m", creationTimestamp="soon"))
    by_age = sorted(found.pods, key=lambda one: one.created)
    assert [one.name for one in by_age] == ["old", "z", "a", "m"]
    assert len({one.created for one in found.pods}) == 4


def test_equal_times_stay_equal() -> None:
    moment = "2026-01-02T03:04:05Z"
    found = parse(pod("b", creationTimestamp=moment), pod("a", creationTimestamp=moment))
    assert len({one.created for one in found.pods}) == 1


def test_times_at_the_end_of_the_calendar_leave_room_for_stand_ins() -> None:
    assert len(parse(pod("a", creationTimestamp="9999-12-31T23:59:59.999999Z"), pod("b")).pods) == 2


def test_a_job_without_uid_is_the_one_its_pods_name() -> None:
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "j",
        "uid": "u-9",
        "controller": True,
    }
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ml"},
    }
    found = parse(job, pod("a", namespace="ml", ownerReferences=[owner]))
    assert found.jobs[0].uid == "u-9"
    assert parse(job).jobs[0].uid == "job/ml/j"
    assert parse(job, pod("a", ownerReferences=[owner])).jobs[0].uid == "job/ml/j"
    assert JOB in found.raw


def test_the_later_duplicate_counts_and_is_told() -> None:
    text = as_yaml(pod("a", uid="1"), pod("b", uid="2"), pod("a", namespace="default", uid="3"))
    found = state.parse("f", text)
    assert [one.uid for one in found.pods] == ["2", "3"]
    (warning,) = found.warnings
    assert warning == "f:13: Pod default/a is given twice, first in line 1; this one counts"
    listed = {"apiVersion": "v1", "kind": "List", "items": [pod("a"), pod("a")]}
    (warning,) = state.parse("f", json.dumps(listed, indent=1).encode()).warnings
    assert warning.startswith("f:12: Pod default/a ")


def test_the_same_name_of_another_kind_is_no_duplicate() -> None:
    assert parse(queue("a"), pod("a")).warnings == ()


def test_unicode_survives() -> None:
    found = parse(pod("a", annotations={"volcano.sh/card.name": "卡片😀"}))
    assert found.pods[0].card_name == "卡片😀"


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"3", 1, "must be a Kubernetes object"),
        (b"\n- kind: Pod", 2, "must be a Kubernetes object"),
        (b"kind: Pod\nmetadata: {name: a}", 1, "apiVersion must be set"),
        (b"apiVersion: v1\nkind: [Pod]", 2, "kind must be set"),
        (b"apiVersion: v1\nkind: ''", 2, "kind must be set"),
        (b"apiVersion: v1\nkind: Pod", 1, "a Pod needs metadata.name"),
        (b"apiVersion: v1\nkind: Pod\nmetadata:\n  name: 5", 4, "metadata.name must be a text"),
        (b"apiVersion: v1\nkind: Pod\nmetadata:\n  name:", 4, "needs metadata.name"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: []", 3, "metadata of a Pod must be a mapping"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: 3", 4, "spec of a Pod must be a mapping"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: {name: a,\n name: b}", 4, "metadata.name is given twice"),
        (b"apiVersion: v1\nkind: List\nitems: 3", 3, "items must be a list"),
        (b"apiVersion: v1\nkind: List\nitems:\n- null", 4, "must be a Kubernetes object"),
        (b"apiVersion: v1\nkind: List\nitems:\n- metadata: {}", 4, "apiVersion must be set"),
        (b"apiVersion: v1\nkind: PodList\nitems:\n- spec: {}", 4, "a Pod needs metadata.name"),
        (b"a: 1\nb: \xff", 2, "0xff is not UTF-8"),
        (b'{"apiVersion": "v1",\n"kind": 3}', 2, "kind must be set"),
        (b'{"apiVersion": "v1",\n"kind" "Pod"}', 2, "JSON"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(content: bytes, line: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        state.parse("state.yaml", content)
    assert str(caught.value).startswith(f"state.yaml:{line}: ")


@pytest.mark.parametrize("garbage", [None, 3, 1.5, True, "x", [], {}, [None], [3], {"": None}, {"x": [{}]}])
@pytest.mark.parametrize(
    "path",
    list(itertools.product(["metadata", "spec", "status"], ["labels", "annotations", "containers", "x"])),
)
def test_garbage_below_the_main_parts_is_read_as_absent(garbage: object, path: tuple[str, str]) -> None:
    """A stored object that cannot be read completely still counts as far as it can."""
    for version, kind in [("v1", "Pod"), ("v1", "Node"), ("scheduling.volcano.sh/v1beta1", "Queue")]:
        raw: dict[str, Any] = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
        raw.setdefault(path[0], {})[path[1]] = garbage
        assert parse(raw).raw


def test_a_file_that_is_not_there_is_an_error_without_traceback(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        state.load(str(tmp_path / "none.yaml"))
    with pytest.raises(InputError, match="Is a directory"):
        state.load(str(tmp_path))
    with pytest.raises(InputError, match="null"):
        state.load("a\0b")
