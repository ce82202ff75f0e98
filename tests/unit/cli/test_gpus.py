"""`cardquota gpus`: how full the cards are, and with whom."""

import json
from pathlib import Path

import pytest

from cli.gpus import bar
from tests.builders import a_node, a_pod, a_queue
from tests.unit.cli.conftest import Run

WHOLE = a_node("a").card("NVIDIA-H200", 8)
SHARED = a_node("m").label("vke.node.gpu.schedule", "mgpu").mgpu(2, memory=8192)
OBJECTS = [
    WHOLE,
    SHARED,
    a_node("cpu"),
    a_pod("big").gpu(4).card("NVIDIA-H200").assigned({"NVIDIA-H200": 4}).bound_to("a"),
    a_pod("small").gpu(1).card("NVIDIA-H200").assigned({"NVIDIA-H200": 1}).bound_to("a"),
    a_pod("waits").gpu(1).card("NVIDIA-H200").gated(),
    a_pod("share")
    .mgpu(core=30, memory=1024)
    .annotation("vke.volcengine.com/gpu-index-container-main", "1")
    .bound_to("m"),
]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    items = [thing.build() for thing in OBJECTS]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def test_each_card_has_its_bar_and_its_pods(run: Run, state: Path) -> None:
    outcome = run("gpus", "--state", state)
    assert (outcome.status, outcome.err) == (0, "")
    assert (
        outcome.out
        == """\
NODE   CARD          FULL           IN USE                  PODS
a      NVIDIA-H200   [######....]   5/8                     ml/big (4), ml/small (1)
m      mGPU 0        [..........]   0/100, 0/8192 MiB       <none>
m      mGPU 1        [###.......]   30/100, 1024/8192 MiB   ml/share
"""
    )


def test_json_has_all_of_it(run: Run, state: Path) -> None:
    nodes = json.loads(run("gpus", "--state", state, "-o", "json").out)["nodes"]
    assert nodes.keys() == {"a", "m"}
    assert nodes["a"] == {
        "cards": {
            "NVIDIA-H200": {
                "resource": "nvidia.com/gpu",
                "count": 8,
                "used": 5,
                "pods": {"ml/big": 4, "ml/small": 1},
                "unnamed": [],
            }
        },
        "mgpu": [],
    }
    assert nodes["m"]["mgpu"][1] == {
        "index": 1,
        "core": 100,
        "coreUsed": 30,
        "memory": 8192,
        "memoryUsed": 1024,
        "pods": ["ml/share"],
    }


OUTSIDERS = [
    WHOLE,
    a_pod("named").gpu(2).card("NVIDIA-H200").assigned({"NVIDIA-H200": 2}).bound_to("a"),
    a_pod("nameless").gpu(5).bound_to("a"),
    a_pod("other").gpu(1).card("NVIDIA-H100").bound_to("a"),
]


def test_pods_that_do_not_name_the_card_they_use_are_counted_and_marked(run: Run, tmp_path: Path) -> None:
    """As by `explain` and `cardquota_cards_unaccounted`: whoever has the card, nobody else gets it."""
    path = tmp_path / "state.json"
    items = [
        *OUTSIDERS,
        a_queue("q").cards({"NVIDIA-H200": 8}),
        a_pod("new").gpu(1).card("NVIDIA-H200").gated(),
    ]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [one.build() for one in items]}))
    assert run("gpus", "--state", path).out.splitlines()[1:] == [
        "a      NVIDIA-H100   [!!!!!!!!!!]   1/0      ml/other (1)",
        "a      NVIDIA-H200   [##########]   8/8      ml/named (2), ml/nameless (5, card not named), ml/other (1, card not named)",
    ]
    card = json.loads(run("gpus", "--state", path, "-o", "json").out)["nodes"]["a"]["cards"]["NVIDIA-H200"]
    assert (card["used"], card["unnamed"]) == (8, ["ml/nameless", "ml/other"])
    stock = json.loads(run("explain", "ml/new", "--state", path, "-o", "json").out)["stock"]["NVIDIA-H200"]
    assert (stock["total"], stock["free"]) == ("8", "0")


def test_nodes_of_a_namespace_are_also_those_where_its_pods_do_not_name_the_card(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "state.json"
    items = [WHOLE.build(), a_pod("nameless").gpu(1).bound_to("a").build()]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert run("gpus", "-n", "ml", "--state", path, "-o", "name").out == "node/a\n"


UNNAMED = a_node("x").label("pool", "new").allocatable("nvidia.com/gpu", 4)
TOLD = "warning: node x: nvidia.com/gpu is offered and gives no card, so no card quota counts it: "


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), True),
        (("-o", "json"), True),
        (("--limit", "1"), True),
        (("-l", "pool=new"), True),
        (("-l", "pool=old"), False),
        (("-n", "ml"), True),
        (("-n", "others"), False),
    ],
)
def test_accelerators_that_give_no_card_are_told_as_by_cards(
    run: Run, tmp_path: Path, options: tuple[str, ...], told: bool
) -> None:
    """Of the nodes that are asked for; they have no row of their own."""
    path = tmp_path / "state.json"
    objects = [WHOLE, UNNAMED, a_pod("runs").gpu(1).bound_to("x")]
    path.write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [one.build() for one in objects]})
    )
    outcome = run("gpus", "--state", path, *options)
    lines = [line for line in outcome.err.splitlines() if line.startswith("warning: ")]
    assert (len(lines), outcome.status) == (1 if told else 0, 0)
    assert all(line.startswith(TOLD) for line in lines)
    if "-n" not in options:
        also = run("cards", "--state", path, *options).err.splitlines()
        assert lines == [line for line in also if line.startswith("warning: node ")] or "--limit" in options


@pytest.mark.parametrize(
    ("used", "whole", "shown"),
    [
        (0, 8, "[..........]"),
        (1, 100, "[#.........]"),
        (99, 100, "[#########.]"),
        (8, 8, "[##########]"),
        (9, 8, "[!!!!!!!!!!]"),
        (0, 0, "[..........]"),
    ],
)
def test_a_bar_shows_little_as_something_and_only_full_as_full(used: int, whole: int, shown: str) -> None:
    assert bar(used, whole) == shown
