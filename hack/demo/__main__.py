"""`python -m hack.demo [--keep]`: plays the story; the exit status is 0 only if all was as told."""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

from hack import prometheus
from hack.controlplane import ApiError, ControlPlane, ManagedProcess, ProcessError, WaitError, nodes, wait_for
from hack.demo import story
from hack.demo.kept import Kept
from hack.demo.shell import DemoError, Shell
from hack.demo.terminal import Terminal, wants_colour
from hack.installation.rendering import CHART, RenderError
from hack.panels import __main__ as panels
from hack.panels.dashboard import PanelError
from hack.prometheus import QueryError
from hack.toolchain import BINARIES, Store, ToolchainError, to_stream

MANIFESTS = Path(__file__).with_name("manifests")

_ROOT = Path(__file__).parents[2]
_SETUP_ERRORS = (
    ToolchainError,
    ProcessError,
    WaitError,
    ApiError,
    RenderError,
    QueryError,
    PanelError,
    OSError,
    subprocess.SubprocessError,
)
_LOG_LINES = 20
_DESCRIBED = 2
_KEPT = """\
Everything stays up until Ctrl-C. In another terminal:

  export KUBECONFIG={kubeconfig}
  export PATH={path}:$PATH

  kubectl get pods --watch
  kubectl delete pod train-2                          # train-5 takes its card
  kubectl annotate queue research --overwrite volcano.sh/card.quota='{{"NVIDIA-H200": 1}}'
  kubectl apply -f {manifests}/train.yaml             # waits: nothing is evicted, nothing is let in
  cardquota queues
  curl -s {metrics}               # of the controller, until helm upgrade: its new address is told here
  helm upgrade cardquota {chart} -n cardquota-system --reset-then-reuse-values --set cards.podsWithoutCardName=deny
  helm uninstall cardquota -n cardquota-system
  tail -f {logs}/*.log
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build what is missing, play, clean up; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m hack.demo", description="Plays the main story on a local control plane."
    )
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.add_argument(
        "--pictures",
        metavar="DIR",
        type=Path,
        help="have a local Prometheus watch, and draw the dashboards' panels of the story",
    )
    options = parser.parse_args(arguments)
    terminal = Terminal(sys.stdout, colour=wants_colour(sys.stdout, os.environ))
    try:
        Store().ensure(BINARIES, to_stream())
        play(terminal, keep=options.keep, pictures=options.pictures)
    except DemoError:
        return 1  # said where it happened, while there was something to show
    except BrokenPipeError:
        # The reader has gone (`| head`), and the interpreter's own flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except _SETUP_ERRORS as error:
        terminal.error(str(error))
        return 1
    except KeyboardInterrupt:
        terminal.step("interrupted, and cleaned up")
        return 128 + signal.SIGINT
    except SystemExit:
        terminal.step("told to end, and cleaned up")
        raise
    return 0


def play(terminal: Terminal, *, keep: bool, pictures: Path | None = None) -> None:
    """Set up, tell the story and clean up. Raises `DemoError`, told already, if something was not as told."""
    started = time.monotonic()
    terminal.heading("A control plane, nodes, and cardquota")
    with ControlPlane(progress=terminal.step) as plane:
        plane.add_nodes(
            nodes.h200_node("h200-1"),
            nodes.h200_node("h200-2"),
            nodes.mig_mps_node("a100-1"),
            nodes.mgpu_node("mgpu-1"),
        )
        with Kept(plane, terminal) as kept, ExitStack() as beside:
            watching = (
                beside.enter_context(prometheus.running(plane, kept.metrics_address))
                if pictures is not None
                else None
            )
            began = time.time()
            shell = _shell(terminal, plane)
            try:
                story.tell(shell)
            except DemoError as error:
                _explain(shell, error, kept.processes)
                raise
            terminal.heading(f"All was as told, in {time.monotonic() - started:.0f} s")
            if watching is not None and pictures is not None:
                told = time.time()
                wait_for("the end of the story is scraped", lambda: watching.scraped_since(told))
                terminal.heading(f"What the dashboards show of it, by the Prometheus at {watching.url}")
                terminal.output("\n".join(panels.write(watching, pictures, began, time.time())))
            if keep:
                _stay(terminal, plane, kept)
            terminal.step("cleaning up")
    terminal.step(f"everything is gone again, after {time.monotonic() - started:.0f} s")


def _shell(terminal: Terminal, plane: ControlPlane) -> Shell:
    programs = {"kubectl": [str(plane.binary("kubectl"))], "cardquota": [sys.executable, "-m", "cli"]}
    environ = {
        "KUBECONFIG": str(plane.admin_kubeconfig),
        "KUBECACHEDIR": str(plane.directory / "kubectl-cache"),
        "KUBERC": "off",  # the user's own preferences for kubectl would change what is printed
        "PYTHONPATH": str(_ROOT),
    }
    return Shell(terminal, MANIFESTS, programs, environ)


def _explain(shell: Shell, error: DemoError, processes: Sequence[ManagedProcess]) -> None:
    """Show what is there when something did not happen."""
    terminal = shell.terminal
    terminal.error(str(error))
    try:
        waiting = shell.quietly(
            "kubectl get pods --field-selector=status.phase!=Running -o name"
        ).output.split()
        for line in (
            "kubectl get pods -o wide",
            *(f"kubectl describe {pod}" for pod in waiting[:_DESCRIBED]),
            "kubectl get events --sort-by=.metadata.creationTimestamp",
        ):
            terminal.command(line)
            terminal.output(shell.quietly(line).output)
    except DemoError as another:
        terminal.error(str(another))
    for process in processes:
        terminal.command(f"tail -n {_LOG_LINES} {process.log}")
        terminal.output("\n".join(process.log_tail().splitlines()[-_LOG_LINES:]))


def _stay(terminal: Terminal, plane: ControlPlane, kept: Kept) -> None:
    """Return at Ctrl-C."""
    folders = (plane.binary("kubectl").parent, Path(sys.executable).parent)
    terminal.output(
        _KEPT.format(
            kubeconfig=shlex.quote(str(plane.admin_kubeconfig)),
            path=":".join(shlex.quote(str(folder)) for folder in folders),
            manifests=shlex.quote(str(MANIFESTS)),
            metrics=kept.metrics[0],
            chart=shlex.quote(str(CHART)),
            logs=shlex.quote(kept.logs),
        )
    )
    try:
        kept.stay()
    except KeyboardInterrupt:
        terminal.output("")


def _told_to_end(*_: object) -> NoReturn:
    """At SIGTERM: whatever is under way is left as at Ctrl-C, so that all is cleaned up. That is not interrupted by another one."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _told_to_end)
    sys.exit(main())
