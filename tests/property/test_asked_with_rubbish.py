"""Whatever somebody gives to `can-run`, `advise` and `explain`, the answer is an answer or a clear error: never a traceback."""

import contextlib
import copy
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from cli.main import main
from core import names

CARD = "NVIDIA-H200"
_NOTED = {names.CARD_NAME_ANNOTATION: CARD, names.QUEUE_NAME_ANNOTATION: "team"}
_POD_SPEC = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
_TEMPLATE = {"metadata": {"annotations": _NOTED}, "spec": _POD_SPEC}
MANIFESTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": _NOTED}, "spec": _POD_SPEC},
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "w"},
        "spec": {"replicas": 2, "template": _TEMPLATE},
    },
    {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "w"},
        "spec": {"jobTemplate": {"spec": {"parallelism": 2, "template": _TEMPLATE}}},
    },
    {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "w"},
        "spec": {
            "queue": "team",
            "minAvailable": 1,
            "tasks": [{"name": "t", "replicas": 2, "template": _TEMPLATE}],
        },
    },
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "team", "annotations": {names.CARD_QUOTA_ANNOTATION: '{"NVIDIA-H200": 1}'}},
        "spec": {"capability": {"cpu": "4"}},
    },
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"queue": "team", "minMember": 2},
    },
]
WAITING = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "old", "uid": "u", "annotations": _NOTED},
    "spec": {**_POD_SPEC, "schedulingGates": [{"name": names.GATE}]},
}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "n",
        "labels": {
            "nvidia.com/gpu.product": CARD,
            "nvidia.com/gpu.count": "8",
            "nvidia.com/gpu.memory": "141",
        },
    },
    "status": {"allocatable": {"nvidia.com/gpu": "8"}},
}

rubbish: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, 10**30, 1.5, True, "", "x", "a|", "\x00", "\ud7ff", [], [None], {}, {"": None}, {"a": [{}]}]
).map(copy.deepcopy)
"""Each time another one: what is put into the first place may be spoilt in its turn."""


def _paths(value: object, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, each in inner for path in _paths(each, (*at, key)))]


@st.composite
def spoilt(draw: st.DrawFn, whole: dict[str, Any]) -> object:
    """The object with something else in one place or two."""
    result: Any = json.loads(json.dumps(whole))
    for _ in range(draw(st.integers(1, 2))):
        path = ("", *draw(st.sampled_from(_paths(result))))
        around: Any = {"": result}
        holder = around
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = draw(rubbish)
        result = around[""]
    return result


def outcome(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(arguments))
    return status, out.getvalue(), err.getvalue()


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_there_is_an_answer_or_a_clear_error(data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(MANIFESTS).flatmap(spoilt))
    text = json.dumps(one)
    cut = data.draw(st.sampled_from([len(text), len(text), len(text) // 2]))
    state = data.draw(st.sampled_from([NODE, WAITING, MANIFESTS[4]]).flatmap(spoilt))
    with tempfile.TemporaryDirectory() as folder:
        manifest, cluster = Path(folder) / "m.json", Path(folder) / "s.json"
        manifest.write_text(text[:cut], "utf-8")
        known = [NODE, WAITING, MANIFESTS[4], *([state] if isinstance(state, dict) else [])]
        cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": known}), "utf-8")
        form = data.draw(st.sampled_from(["text", "json"]))
        for arguments in (
            ("can-run", str(manifest)),
            ("can-run", str(manifest), "--queue", "team"),
            ("advise", "team", "--fits", str(manifest)),
            ("explain", "old"),
        ):
            status, out, err = outcome(*arguments, "--state", str(cluster), "-o", form)
            event(f"{arguments[0]} {status}")
            assert status in (0, 1, 2, 3)
            if status == 2:
                assert out == ""
                *_, said, remedy = err.splitlines()
                assert said.startswith("error: ")
                assert len(said) > len("error: ") + 10
                assert remedy.startswith(("try: ", "See '"))
            elif form == "json":
                json.loads(out)
