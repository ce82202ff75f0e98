"""`python -m hack.demo` as a user runs it: it tells the whole story, and nothing of it is left behind."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hack.controlplane import wait_for
from hack.dashboards import DASHBOARDS
from hack.toolchain import prometheus

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 240.0

# Signals that are ignored where the tests were started, as in the background of a shell, are ignored by children too.
INTERRUPTIBLE = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"

# Refusals, then what the tables and the status show.
TOLD = (
    r'^Error from server \(BadRequest\): error when creating "mgpu-core-120.yaml": admission webhook',
    r'^Error from server \(BadRequest\): error when creating "quota-in-quotes.yaml": admission webhook',
    r'^Error from server \(BadRequest\): error when creating "two-resources.yaml": admission webhook',
    r'^Error from server \(BadRequest\): error when creating "bad-template.yaml": admission webhook',
    r"^train-3 +1/1 +Running ",
    r"^train-4 +0/1 +SchedulingGated ",
    r"InsufficientScalarQuota .* but capability is <3000>\. In cards: asks for 1, 3 of 3 are in use; .*\.$",
    r"^train-4 +1/1 +Running ",
    r"^notebook-a +mgpu-1 +(\d)\nnotebook-b +mgpu-1 +\1\nnotebook-c +mgpu-1 +(?!\1)\d$",
    r"^  allocated:\n    NVIDIA-H200: \"3\"$",
    r"^research +Open +NVIDIA-H200 +3 +3 +0 +1$",
    r"^== All was as told, in \d+ s$",
)


NAMELESS = json.dumps(
    {"spec": {"containers": [{"name": "c", "image": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
)

BROKEN = (
    "kubectl patch deployment/cardquota-webhook -n cardquota-system --type=json -p "
    """'[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--nonsense"}]'"""
)


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The demo with `folder` for its temporary files; killed when it takes too long."""
    command = [sys.executable, "-c", INTERRUPTIBLE, sys.executable, "-m", "hack.demo", *arguments]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        watchdog = threading.Timer(TIMEOUT_S, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            watchdog.join()
            process.kill()


def read_until(process: subprocess.Popen[str], wanted: str) -> str:
    """What the demo writes up to and including the line with `wanted`."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if wanted in line:
            return text
    pytest.fail(f"the demo ended without {wanted!r}:\n{text}")


def nothing_is_left_in(folder: Path) -> bool:
    """Whether no file is in the folder, and no process has it for its temporary files."""
    variable = f"TMPDIR={folder}".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if variable in environ.read_bytes().split(b"\0"):
                return False
        except OSError:  # ended meanwhile, or somebody else's
            continue
    return not list(folder.iterdir())


def test_the_story_is_told_to_its_end_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        text, _ = process.communicate()
    assert process.returncode == 0, text
    position = 0
    for pattern in TOLD:
        found = re.compile(pattern, re.MULTILINE).search(text, position)
        assert found, f"{pattern!r} is missing, or too early, in:\n{text}"
        position = found.start()
    assert "\x1b" not in text
    wait_for("nothing is left behind", lambda: nothing_is_left_in(tmp_path))


NOT_IN_THE_STORY = {
    "cluster-crossquota-by-node",
    "cluster-mgpu-records-that-are-not-in-order",
    "cluster-nodes-that-a-scheduler-was-told-not-to-use",
    "queues-beyond-the-quota",
    "queues-devices-in-use",
}
"""Pictures of what does not happen: nothing is wrong, pods without GPU are not limited, no scheduler asks an extender, nobody claims devices."""


def test_the_dashboards_show_the_story_as_pictures(tmp_path: Path) -> None:
    """A real Prometheus has watched the real processes meanwhile, and takes every query."""
    if prometheus.find("prometheus") is None:
        pytest.skip(prometheus.MISSING.format("prometheus"))
    folder, pictures = tmp_path / "temporary", tmp_path / "pictures"
    folder.mkdir()
    with started(folder, "--pictures", str(pictures)) as process:
        text, _ = process.communicate()
    assert process.returncode == 0, text
    told = dict(re.findall(rf"^{re.escape(str(pictures))}/(\S+)\.svg(.*)$", text, re.MULTILINE))
    assert {file.stem for file in pictures.iterdir()} == told.keys()
    assert len(told) == sum(len(dashboard.panels) for dashboard in DASHBOARDS)
    empty = {name for name in told if "No data" in (pictures / f"{name}.svg").read_text("utf-8")}
    assert empty == NOT_IN_THE_STORY == {name for name, note in told.items() if note.strip() == "(no data)"}
    shown = {name: re.findall(r">([^<>]+)</text>", (pictures / f"{name}.svg").read_text()) for name in told}
    # Three of three cards are in use, of the sixteen that there are, and one pod waits.
    assert shown["queues-fullest-queues"][1:] == ["research NVIDIA-H200", "100 %"]
    assert shown["queues-queues-that-wait-longest"][1] == "research"
    assert {"quota NVIDIA-H200", "allocated NVIDIA-H200", "3"} <= {*shown["queues-quota-and-use"]}
    assert "4" not in shown["queues-quota-and-use"]
    assert {"on nodes NVIDIA-H200", "in use NVIDIA-H200", "20"} <= {*shown["cluster-cards"]}
    assert {"NVIDIA-H200", "20 %"} <= {*shown["cluster-quota-sold-of-the-cards-that-there-are"]}
    assert {"h200-1 NVIDIA-H200", "h200-2 NVIDIA-H200", "8"} <= {*shown["cluster-cards-by-node"]}
    # Two notebooks share a card of the mGPU node, the third has another one.
    assert shown["cluster-fullest-mgpu-cards"][1].startswith("mgpu-1 ")
    assert {"done"} <= {*shown["queues-lifts-for-the-queues"]}
    assert {"InsufficientScalarQuota"} <= {*shown["queues-why-pods-of-the-queues-are-left-waiting"]}
    wait_for("nothing is left behind", lambda: nothing_is_left_in(folder))


def as_told(text: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script as somebody would in another terminal, after the lines that the demo gives for that."""
    exports = "\n".join(re.findall(r"^  (export .*)$", text, re.MULTILINE))
    return subprocess.run(
        ["sh", "-ec", f"{exports}\n{script}"], capture_output=True, text=True, check=False, timeout=120
    )


def test_kept_it_can_be_used_as_it_says_until_ctrl_c_which_cleans_up(tmp_path: Path) -> None:
    with started(tmp_path, "--keep") as process:
        text = read_until(process, "export PATH=")
        used = as_told(text, "kubectl get pods -o name\ncardquota queues")
        assert "pod/train-5\n" in used.stdout
        assert re.search("^research +Open +NVIDIA-H200 ", used.stdout, re.MULTILINE)
        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate()
    assert process.returncode == 0, rest
    assert "everything is gone again" in rest
    wait_for("nothing is left behind", lambda: nothing_is_left_in(tmp_path))


@pytest.mark.parametrize("moment", ["== A control plane", "kubectl apply"])
def test_told_to_end_it_cleans_up_as_at_ctrl_c(tmp_path: Path, moment: str) -> None:
    """By SIGTERM, as a service manager or a CI job that is called off does: while it is set up, and in the middle of the story."""
    with started(tmp_path) as process:
        read_until(process, moment)
        process.terminate()
        rest, _ = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM, rest
    assert "Traceback" not in rest
    wait_for("nothing is left behind", lambda: nothing_is_left_in(tmp_path))


def test_kept_its_metrics_can_be_read_a_setting_changed_and_all_of_it_uninstalled(tmp_path: Path) -> None:
    """By the very lines that the demo prints, each of which does what it would in a cluster of one's own."""
    with started(tmp_path, "--keep") as process:
        text = read_until(process, "tail -f ")
        lines = {
            line.split()[0] + " " + line.split()[1]: line
            for line in re.findall(r"^  (\S+ .*)$", text, re.MULTILINE)
        }
        metrics = as_told(text, lines["curl -s"]).stdout
        assert re.search(r'^volcano_queue_card_allocated\{.*"research".*\} 3', metrics, re.MULTILINE), metrics
        assert as_told(text, lines["helm upgrade"]).returncode == 0
        # Which of the two is seen to be another one first is helm's and the demo's luck.
        replaced = read_until(process, " has ended") + read_until(process, " has ended")
        ended = {*re.findall(r"(\S+) has ended", replaced)}
        assert ended == {"cardquota-controller-0", "cardquota-webhook-1"}
        ready = r"cardquota-(\w+)-\d is ready, its metrics are at http://127\.0\.0\.1:\d+/metrics"
        assert sorted(re.findall(ready, replaced)) == ["controller", "webhook"]
        nameless = "kubectl run nameless --image=c --overrides=" + shlex.quote(NAMELESS)
        refused = as_told(text, nameless).stderr
        assert "nvidia.com/gpu is asked for without a card name" in refused
        assert as_told(text, BROKEN).returncode == 0
        read_until(process, "does not get ready, so cardquota-webhook-")
        assert "without a card name" in as_told(text, nameless).stderr
        assert as_told(text, lines["helm uninstall"]).returncode == 0
        read_until(process, "cardquota-webhook is gone")
        # The pod that waited was let go, and nobody holds another one.
        gates = as_told(text, "kubectl get pods -o jsonpath='{.items[*].spec.schedulingGates}'").stdout
        assert gates == ""
        assert as_told(text, nameless).stdout == "pod/nameless created\n"
        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate()
    assert process.returncode == 0, rest
    wait_for("nothing is left behind", lambda: nothing_is_left_in(tmp_path))
