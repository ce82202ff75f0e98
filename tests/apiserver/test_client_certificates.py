"""An API server that shows a certificate to webhooks, and processes that answer nobody who does not (`webhook.clientCA`)."""

import json
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from kube import pki
from kube.pki import Pair
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import hook_entry, leader_index
from tests.apiserver.manifests import binding, card_pod, share_pod
from tests.apiserver.test_binding import CARD_MIB, NOBODY, record, records, refused
from tests.apiserver.test_standby import HEADERS, Caller
from tests.apiserver.trusting import Kept
from tests.own_plane import own_plane

PLUGINS = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
NOW = datetime.now(UTC)


class Authority:
    """Whoever signs for API servers, and the files by which one shows its certificate."""

    def __init__(self, folder: Path) -> None:
        self.ca = pki.issue_ca(NOW, common_name="front of webhooks")
        self.pair = self.files(folder, pki.issue_leaf(self.ca, ["kube-apiserver"], NOW), "server")
        users = [{"name": "*", "user": {"client-certificate": self.pair[0], "client-key": self.pair[1]}}]
        kubeconfig = folder / "webhooks.kubeconfig"
        kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": users}), "utf-8")
        group = "apiserver.config.k8s.io/v1"
        configured = {
            "apiVersion": group,
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": str(kubeconfig),
        }
        plugins = [{"name": name, "configuration": configured} for name in PLUGINS]
        self.admission = folder / "admission.json"
        text = json.dumps({"apiVersion": group, "kind": "AdmissionConfiguration", "plugins": plugins})
        self.admission.write_text(text, "utf-8")

    @staticmethod
    def files(folder: Path, pair: Pair, name: str) -> tuple[str, str]:
        """The pair in two files."""
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        return str(certificate), str(key)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def control_plane(
    request: pytest.FixtureRequest, authority: Authority, progress: Callable[[str], None]
) -> Iterator[ControlPlane]:
    """One of its own, for the API server is started so."""
    arguments = [f"--admission-control-config-file={authority.admission}"]
    with own_plane(request, api_server_arguments=arguments, progress=progress) as plane:
        yield plane


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane, authority: Authority) -> Iterator[Installation]:
    values = {
        "webhook": {"clientCA": authority.ca.certificate.decode()},
        "controller": {"bindingHook": {"failurePolicy": "Fail"}},
    }
    with Installation(control_plane, values=values, controller=2) as installed:
        yield installed


def test_the_api_server_is_answered_and_binds_reach_the_leader(
    cluster: Cluster, installation: Installation
) -> None:
    node = unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=1, memory_mib=CARD_MIB))
    (stored,) = cluster.create(card_pod("gated", "NVIDIA-H200", "default"))
    assert stored["spec"]["schedulingGates"] == [{"name": names.GATE}]
    cluster.create(*[share_pod(name, 100, schedulerName=NOBODY) for name in ("a", "b")])
    # The replica that is asked may be a standby, which has to see the Lease first.
    wait_for("the leader is known", lambda: cluster.bind(binding("a", node), dryRun="All").status == 201)
    cluster.bind(binding("a", node)).expect(201)
    assert records(cluster.pod("a")) == record(0)
    refused(cluster.bind(binding("b", node)), 409, reasons.MGPU_NO_ROOM)


def test_who_shows_none_or_anothers_gets_no_word_in(
    cluster: Cluster, installation: Installation, authority: Authority, tmp_path: Path
) -> None:
    """Not even where the path of the hook is known; and one for the API server opens no way between replicas."""
    node = unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=1, memory_mib=CARD_MIB))
    cluster.create(share_pod("a", 100, schedulerName=NOBODY))
    caller = Caller(cluster, installation)
    kept = Kept(cluster.plane, installation)
    webhook = next(client["url"] for name, client in kept.entries().items() if name == "pods.cardquota.io")
    leader = leader_index(cluster.plane, installation)
    hooks = [installation.controller_url(i) + hook_entry(cluster.plane).url_path for i in range(2)]
    stranger = pki.issue_leaf(pki.issue_ca(NOW), ["kube-apiserver"], NOW)

    def ask(url: str, pair: tuple[str, str] | None) -> Any:
        tls = ssl.create_default_context(cadata=next(iter(kept.trusted())).decode())
        if pair is not None:
            tls.load_cert_chain(*pair)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
        )
        request = urllib.request.Request(url, caller.review("a", node), HEADERS)
        with opener.open(request, timeout=10.0) as response:
            return json.load(response)["response"]

    for url in (webhook, *hooks):
        for pair in (None, Authority.files(tmp_path, stranger, "stranger")):
            with pytest.raises(OSError, match=r"(?i)alert|reset|EOF|closed connection|broken pipe"):
                ask(url, pair)
    wait_for("the standby has seen the Lease", lambda: ask(hooks[1 - leader], authority.pair)["allowed"])
    with pytest.raises(OSError, match="403"):
        ask(installation.controller_url(leader) + "/leader/bindings", authority.pair)
