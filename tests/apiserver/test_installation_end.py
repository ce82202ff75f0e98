"""Installations that end, or never come up: what stays and what does not."""

import os
import signal
from pathlib import Path

import pytest

from hack import install
from hack.controlplane import ControlPlane, ProcessError, ports, wait_for
from hack.install import Installation


def test_nothing_but_the_crds_is_left_behind(control_plane: ControlPlane) -> None:
    """Right after another installation, and right before the next: each waits for what is still on its way out."""
    for _ in range(2):
        with Installation(control_plane, namespace="short-lived", controller=0) as installed:
            (process,) = installed.webhook_processes
            pid = process.pid
            removed = [thing for thing in installed.objects if thing["kind"] != "CustomResourceDefinition"]
            paths = [control_plane.api.path_of(thing) for thing in removed]
        assert not Path(f"/proc/{pid}").exists()
        for path in paths:
            answer = control_plane.api.get(path)
            assert answer.status == 404 or "deletionTimestamp" in answer.body["metadata"]


def test_what_was_there_before_stays(control_plane: ControlPlane) -> None:
    control_plane.create_namespace("kept-namespace")
    path = "/api/v1/namespaces/kept-namespace"
    with Installation(control_plane, namespace="kept-namespace", webhook=False, controller=0):
        pass
    assert "deletionTimestamp" not in control_plane.api.get(path).expect()["metadata"]
    control_plane.api.delete(path).expect()


def test_a_port_that_somebody_took_is_given_up(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first choice of ports is one that the API server listens on."""
    taken = int(control_plane.url.rpartition(":")[2])
    asked: list[int] = []

    def choose(count: int) -> list[int]:
        asked.append(count)
        return [taken, *ports.free_ports(count - 1)] if len(asked) == 1 else ports.free_ports(count)

    monkeypatch.setattr(install, "free_ports", choose)
    with Installation(control_plane, controller=0) as installed:
        assert len(asked) == 2
        assert [process.running for process in installed.webhook_processes] == [True]


def test_a_process_that_does_not_start_is_shown_with_its_log(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And the half-made installation is removed."""
    missing = tmp_path / "kubeconfig"
    monkeypatch.setattr(control_plane, "service_account_kubeconfig", lambda *_: missing)
    with pytest.raises(ProcessError, match=r"cardquota-webhook-0 ended with status [12]:\n.*kubeconfig"):
        Installation(control_plane, controller=0).__enter__()
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/cardquota-validating"
    assert control_plane.api.get(path).status == 404


def test_two_installations_exclude_each_other(control_plane: ControlPlane) -> None:
    with Installation(control_plane, controller=0):
        other = Installation(control_plane, namespace="elsewhere", controller=0)
        with pytest.raises(RuntimeError, match="cardquota-mutating exists"):
            other.__enter__()
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/cardquota-mutating"
        assert control_plane.api.get(path).status == 200


def test_a_process_that_ends_by_itself_is_told_at_once_and_its_log_is_kept_apart(
    control_plane: ControlPlane,
) -> None:
    """The second installation has processes of the same names, and logs of its own."""
    logs = []
    for _ in range(2):
        with Installation(control_plane, controller=0) as installed:
            (process,) = installed.webhook_processes
            logs.append(process.log)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGTERM)
            with pytest.raises(
                ProcessError, match=r"(?s)cardquota-webhook-0 ended by itself with status 0:.*SIGTERM"
            ):
                wait_for("a miracle", lambda: None)
    assert len(set(logs)) == 2
    for log in logs:
        assert log.read_text("utf-8").count("signal received") == 1
