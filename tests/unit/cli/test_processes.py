"""`cardquota webhook` and `controller`: from flags to the options of the process."""

from pathlib import Path
from typing import Any

import pytest
from yarl import URL

import controller.process
import webhook.process
from core.settings import Settings
from tests.unit.cli.conftest import Run

CHART = {
    "webhook": [
        "--port=9443",
        "--metrics-port=8080",
        "--namespace=quota",
        "--cert-secret=cardquota-certificates",
        "--service=cardquota-webhook.quota.svc",
        "--dns-name=cardquota-webhook",
        "--dns-name=cardquota-controller.quota.svc",
        "--webhook-configuration=cardquota-mutating",
        "--webhook-configuration=cardquota-validating",
        "--controller-account=system:serviceaccount:quota:cardquota-controller",
        "--log-level=info",
    ]
}
CHART["controller"] = [
    *CHART["webhook"],
    "--authority-secret=cardquota-controller",
    "--webhook-name=cardquota-webhook",
    "--webhook-name=cardquota-webhook.quota.svc",
    "--kube-extender-port=8443",
    "--answers-port=8444",
    "--lease=cardquota",
    "--identity=pod-1",
    "--hook-timeout=7",
    "--advertise-address=https://10.0.0.1:9443",
    "--extender-port=8090",
]


class Started:
    """Stands for a process: remembers what it was started with."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.options: Any = None

    def run(self, settings: Settings, options: Any) -> int:
        self.settings, self.options = settings, options
        return 7


@pytest.fixture(params=["webhook", "controller"])
def command(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    process = Started()
    monkeypatch.setattr(webhook.process, "run", process.run)
    monkeypatch.setattr(controller.process, "run", process.run)
    return process


def test_every_flag_of_the_chart_arrives(run: Run, started: Started, command: str, tmp_path: Path) -> None:
    config = tmp_path / "cardquota.yaml"
    config.write_text("queue: {default: fallback}\n")
    outcome = run(command, f"--config={config}", *CHART[command])
    assert (outcome.status, outcome.err) == (7, "")
    assert started.settings.queue.default == "fallback"
    options = started.options
    assert (options.port, options.metrics_port, options.bind_address) == (9443, 8080, "0.0.0.0")
    assert (options.namespace, options.cert_secret) == ("quota", "cardquota-certificates")
    assert options.certificate_names == (
        "cardquota-webhook.quota.svc",
        "cardquota-webhook",
        "cardquota-controller.quota.svc",
    )
    assert [name for _, name in options.configurations] == ["cardquota-mutating", "cardquota-validating"]
    assert options.controller_account == "system:serviceaccount:quota:cardquota-controller"
    assert options.kubeconfig is None
    if command == "controller":
        assert (options.lease, options.hook_timeout_s) == ("cardquota", 7.0)
        assert (options.extender_port, options.kube_extender_port) == (8090, 8443)
        assert options.answers_port == 8444
        assert options.authority_secret == "cardquota-controller"
        assert options.webhook_names == ("cardquota-webhook", "cardquota-webhook.quota.svc")
        assert options.identity.startswith("pod-1_"), (
            "a restarted container must not take itself for the old one"
        )
        assert options.advertise_address == "https://10.0.0.1:9443"


def test_settings_that_are_not_used_as_written_are_for_the_process_to_say(
    run: Run, started: Started, command: str, tmp_path: Path
) -> None:
    """Its log is JSON, and a line of text on standard error is not."""
    config = tmp_path / "cardquota.yaml"
    config.write_text("crossQuota: {weight: -1}\n")
    outcome = run(command, f"--config={config}")
    assert (outcome.status, outcome.err) == (7, "")
    (warning,) = started.options.settings_warnings
    assert warning.startswith("crossQuota.weight: -1 ")


def test_without_flags_the_names_are_those_of_the_chart(run: Run, started: Started, command: str) -> None:
    assert run(command, "--namespace", "x").status == 7
    assert started.options.service == f"cardquota-{command}.x.svc"
    assert started.options.controller_account == "system:serviceaccount:x:cardquota-controller"
    if command == "controller":
        assert started.options.webhook_names == ("cardquota-webhook.x.svc",)
    assert started.settings == Settings()


def test_a_local_run_names_its_kubeconfig_and_address(run: Run, started: Started, command: str) -> None:
    run(command, "--kubeconfig", "k", "--bind-address", "127.0.0.1", "--port", "0", "--log-level", "debug")
    options = started.options
    assert (options.kubeconfig, options.bind_address) == (Path("k"), "127.0.0.1")
    assert (options.port, options.log_level) == (0, "debug")


@pytest.mark.parametrize(
    ("address", "listened", "advertised"),
    [
        ("10.0.0.1", "0.0.0.0", "https://10.0.0.1:9443"),
        ("fd00:10:244::5", "::", "https://[fd00:10:244::5]:9443"),
    ],
)
def test_a_pod_listens_and_is_reached_at_the_kind_of_address_that_it_has(
    run: Run,
    started: Started,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
    listened: str,
    advertised: str,
) -> None:
    monkeypatch.setenv("POD_IP", address)
    own = [f"--advertise-address=https://{address}:9443"] if command == "controller" else []
    assert run(command, *own).status == 7
    assert started.options.bind_address == listened
    if own:
        assert started.options.advertise_address == advertised
        assert URL(advertised).host == address


@pytest.mark.parametrize(
    "given", ["https://[fd00::5]:9443", "https://pod.quota:9443", "https://10.0.0.1", ""]
)
def test_an_advertised_address_that_is_a_url_stays_as_it_is(run: Run, started: Started, given: str) -> None:
    run("controller", f"--advertise-address={given}")
    assert started.options.advertise_address == given


def test_an_authority_of_clients_that_cannot_be_read_is_refused_before_anything_starts(
    run: Run, started: Started, command: str, tmp_path: Path
) -> None:
    config = tmp_path / "cardquota.yaml"
    pem = "-----BEGIN CERTIFICATE-----\\nMIIB\\n-----END CERTIFICATE-----"
    config.write_text(f'webhook: {{clientCA: "{pem}"}}\n')
    outcome = run(command, f"--config={config}")
    assert outcome.status == 2
    assert outcome.err.startswith("error: webhook.clientCA: the certificates cannot be read")
    assert started.options is None


@pytest.mark.parametrize("arguments", [(), ("--identity=pod-1",)])
def test_every_process_has_an_identity_of_its_own(
    run: Run, started: Started, arguments: tuple[str, ...]
) -> None:
    run("controller", *arguments)
    first = started.options.identity
    run("controller", *arguments)
    assert first
    assert started.options.identity != first


@pytest.mark.parametrize(
    "arguments",
    [
        ("--port", "70000"),
        ("--port", "-1"),
        ("--metrics-port", "http"),
        ("--log-level", "loud"),
        ("--webhook-configuration", "something"),
        ("--config", "none.yaml"),
    ],
)
def test_wrong_flags_are_refused_before_anything_starts(
    run: Run, started: Started, command: str, arguments: tuple[str, ...]
) -> None:
    outcome = run(command, *arguments)
    assert outcome.status == 2
    assert outcome.err.startswith("error: ")
    assert started.options is None
