"""The pieces of the control plane that need no control plane: nodes, ports, configuration, credentials, audit log."""

import json
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from hack.controlplane import audit, components, nodes, wait_for
from hack.controlplane.client import Answer, ApiError, WaitError
from hack.controlplane.components import Component
from hack.controlplane.credentials import Credentials
from hack.controlplane.kubeconfigs import Kubeconfigs
from hack.controlplane.launcher import Launcher
from hack.controlplane.ports import free_ports
from hack.controlplane.processes import ProcessError, Supervisor
from tests.unit.hack.conftest import executable


def test_an_h200_node_shows_whole_cards() -> None:
    node = nodes.h200_node("n", cards=4)
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H200"
    assert node["metadata"]["labels"]["nvidia.com/gpu.memory"] == "143771"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert node["status"]["allocatable"] == node["status"]["capacity"]


def test_a_mixed_node_shows_whole_shared_and_cut_cards() -> None:
    node = nodes.mig_mps_node("n")
    assert node["metadata"]["labels"]["nvidia.com/gpu.replicas"] == "8"
    shares = {key: value for key, value in node["status"]["allocatable"].items() if "/" in key}
    assert shares == {"nvidia.com/gpu": "5", "nvidia.com/gpu.shared": "16", "nvidia.com/mig-1g.10gb": "3"}


@pytest.mark.parametrize("policy", ["native-burst-share", None])
def test_an_mgpu_node_shows_shares_of_all_its_cards(policy: str | None) -> None:
    node = nodes.mgpu_node("n", cards=3, memory_mib=1000, policy=policy)
    assert node["status"]["allocatable"][nodes.MGPU_CORE] == "300"
    assert node["status"]["allocatable"][nodes.MGPU_MEMORY] == "3000"
    assert node["metadata"]["labels"].get(nodes.MGPU_POLICY) == policy


def test_a_node_is_ready_without_start_up_taints_only() -> None:
    node = nodes.node("n")
    assert not nodes.is_ready(node)
    ready = nodes.made_ready(node)
    assert nodes.is_ready(ready)
    assert not nodes.is_ready({**ready, "spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]}})
    assert nodes.is_ready({**ready, "spec": {"taints": [{"key": "mine"}]}})


def test_ports_are_different_and_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


@pytest.fixture
def three_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody else looks: above those that are handed out here, and those that the kernel gives to clients."""
    first = next(port for port in range(61_000, 65_000, 3) if all(map(port_is_free, range(port, port + 3))))
    monkeypatch.setattr("hack.controlplane.ports._FIRST", first)
    monkeypatch.setattr("hack.controlplane.ports._LAST", first + 3)


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.usefixtures("three_ports")
def test_no_port_is_handed_out_twice_though_nobody_listens_on_it_yet() -> None:
    assert len({*free_ports(2), *free_ports(1)}) == 3
    with pytest.raises(OSError, match="no 1 free ports"):
        free_ports(1)


def test_a_port_that_another_process_was_given_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = "from hack.controlplane.ports import free_ports; print(*free_ports(1), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", ask], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        given = int(other.stdout.readline())
        monkeypatch.setattr("hack.controlplane.ports._FIRST", given)
        monkeypatch.setattr("hack.controlplane.ports._LAST", given + 1)
        with pytest.raises(OSError, match="no 1 free ports"):
            free_ports(1)
        other.communicate("\n", timeout=10)
    assert free_ports(1) == [given]


def test_a_taken_port_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        number = taken.getsockname()[1]
        monkeypatch.setattr("hack.controlplane.ports._FIRST", number)
        monkeypatch.setattr("hack.controlplane.ports._LAST", number + 1)
        monkeypatch.setattr("hack.controlplane.ports._TRIES", 1)
        with pytest.raises(OSError, match="no 1 free ports"):
            free_ports(1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, [{"schedulerName": "mine"}]),
        ("profiles: [{plugins: {}}, {schedulerName: b}]", [{"schedulerName": "mine", "plugins": {}}, {"schedulerName": "b"}]),
        ("profiles: [{schedulerName: a}]", [{"schedulerName": "a"}]),
    ],
)  # fmt: skip
def test_the_scheduler_configuration_is_completed(
    text: str | None, expected: list[dict[str, object]]
) -> None:
    config = components.scheduler_configuration(text, "mine", Path("/k"))
    assert config["profiles"] == expected
    assert config["kind"] == "KubeSchedulerConfiguration"
    assert config["leaderElection"] == {"leaderElect": False}
    assert config["clientConnection"]["kubeconfig"] == "/k"


def test_what_the_scheduler_configuration_says_is_kept() -> None:
    text = "{podMaxBackoffSeconds: 1, clientConnection: {qps: 5}, extenders: [{urlPrefix: 'http://x'}]}"
    config = components.scheduler_configuration(text, "mine", Path("/k"))
    assert config["podMaxBackoffSeconds"] == 1
    assert config["clientConnection"]["qps"] == 5
    assert config["extenders"] == [{"urlPrefix": "http://x"}]


def test_the_kwok_stages_are_complete(tmp_path: Path) -> None:
    components.kwok(tmp_path, tmp_path / "k", 1)
    configuration, *stages = yaml.safe_load_all((tmp_path / "kwok.yaml").read_text())
    assert configuration["kind"] == "KwokConfiguration"
    assert [stage["metadata"]["name"] for stage in stages] == [
        "node-ready",
        "pod-running",
        "pod-complete",
        "pod-gone",
    ]
    assert components.COMPLETE_AFTER in json.dumps(stages[2])
    assert "${" not in (tmp_path / "kwok.yaml").read_text()


def test_credentials_make_clients_and_keep_their_secrets(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path / "pki")
    ssl.create_default_context(cafile=credentials.ca_file)
    pem, key = credentials.client_pair("alice", ["team-a", "team-b"])
    subject = x509.load_pem_x509_certificate(pem).subject.rfc4514_string()
    assert sorted(subject.split(",")) == ["CN=alice", "O=team-a", "O=team-b"]
    assert b"PRIVATE KEY" in key
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "pki").iterdir()} == {0}
    assert f'{credentials.tokens["admin"]},admin,admin,"system:masters"' in credentials.token_file.read_text()


def test_a_kubeconfig_is_for_its_owner_alone(tmp_path: Path) -> None:
    kubeconfigs = Kubeconfigs(tmp_path / "k", "https://s", Credentials(tmp_path / "pki"))
    path = kubeconfigs.for_token("system:serviceaccount:ns:a/b", "t", "ns")
    kubeconfigs.for_user("alice", ["team"])
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "k").iterdir()} == {0o600}
    config = yaml.safe_load(path.read_text())
    assert config["contexts"][0]["context"]["namespace"] == "ns"
    assert config["users"][0]["user"] == {"token": "t"}


def test_the_audit_log_is_read_from_an_offset_without_half_lines(tmp_path: Path) -> None:
    def event(name: str, subresource: str = "") -> str:
        reference = {"resource": "pods", "namespace": "ns", "name": name, "subresource": subresource}
        return json.dumps(
            {
                "verb": "create",
                "user": {"username": "u"},
                "objectRef": reference,
                "responseStatus": {"code": 201},
            }
        )

    log = tmp_path / "audit.log"
    log.write_text(event("old") + "\n")
    offset = log.stat().st_size
    health = json.dumps({"verb": "get", "user": {"username": "u"}, "requestURI": "/readyz"})
    log.write_text(log.read_text() + f"{event('new', 'binding')}\n{health}\n{event('half')[:20]}")
    (entry,) = audit.read(log, offset)
    assert (entry.user, entry.verb, entry.resource, entry.name, entry.code) == (
        "u",
        "create",
        "pods/binding",
        "new",
        201,
    )


def test_the_audit_log_is_read_from_the_next_line_where_the_offset_is_within_one(tmp_path: Path) -> None:
    """Whoever asks for its size may do so while a line is being written."""
    lines = [
        json.dumps(
            {
                "verb": "get",
                "user": {"username": "u"},
                "objectRef": {"resource": "pods", "name": name},
                "requestReceivedTimestamp": "2024-01-01T00:00:00.500000Z",
            }
        )
        for name in ("first", "second")
    ]
    log = tmp_path / "audit.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    whole = len(lines[0]) + 1
    for offset, names in ((0, ["first", "second"]), (1, ["second"]), (whole - 1, ["second"])):
        assert [entry.name for entry in audit.read(log, offset)] == names
    (entry,) = audit.read(log, whole)
    assert (entry.name, entry.received) == ("second", "2024-01-01T00:00:00.500000Z")
    assert audit.read(log, whole + 1) == []


def test_an_answer_is_expected_or_raised() -> None:
    assert Answer(201, {"a": 1}).expect() == {"a": 1}
    assert Answer(409, {}).expect(201, 409) == {}
    with pytest.raises(ApiError, match=r"^409: gone$") as failure:
        Answer(409, {"message": "gone"}).expect()
    assert failure.value.answer.status == 409
    with pytest.raises(ApiError, match=r"^200: fine"):
        Answer(200, "fine").expect(404)


def test_waiting_ends_with_the_value_or_says_what_was_missing() -> None:
    values = iter([0, 0, 7])
    assert wait_for("a number", lambda: next(values)) == 7
    with pytest.raises(WaitError, match=r"a miracle \(last seen: None\)"):
        wait_for("a miracle", lambda: None, timeout_s=0.1)


def test_a_start_is_tried_again_on_another_port_when_the_port_was_taken(tmp_path: Path) -> None:
    directory = tmp_path / "plane"
    directory.mkdir()
    (tmp_path / "ca").write_bytes(Credentials(tmp_path / "pki").ca_file.read_bytes())
    program = executable(tmp_path / "program", "#!/bin/sh\necho listen: address already in use; exit 1\n")
    ports: list[int] = []

    def make() -> Component:
        ports.append(free_ports(1)[0])
        return Component("program", (), f"http://127.0.0.1:{ports[-1]}/")

    supervisor = Supervisor(directory)
    try:
        launcher = Launcher(supervisor, lambda _: program, directory, tmp_path / "ca")
        with pytest.raises(ProcessError, match="address already in use"):
            launcher.start({"program": make})
    finally:
        supervisor.close()
    assert len(ports) == 3
