"""A tenant who may create namespaces makes one that sounds exempt: it is not, unless an administrator has said so."""

import secrets
from collections.abc import Iterator
from contextlib import closing

import pytest

from core import names
from hack.controlplane import ApiClient, ControlPlane, wait_for
from hack.controlplane.client import Answer
from hack.install import Installation
from tests.apiserver.granted import wait_granted
from tests.apiserver.manifests import GPU, Object, card_pod, pod, share_pod

VOLCANO = "volcano-system"
_RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="module")
def maker(control_plane: ControlPlane) -> Iterator[ApiClient]:
    """Somebody who may create namespaces, and what `edit` may in each of them."""
    user = f"maker-{secrets.token_hex(4)}"
    subject = {"apiGroup": _RBAC, "kind": "User", "name": user}
    rule = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"]}
    made: list[Object] = [
        {"kind": "ClusterRole", "metadata": {"name": user}, "rules": [rule]},
        *(
            {
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{user}-{role}"},
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
                "subjects": [subject],
            }
            for role in (user, "edit")
        ),
    ]
    things = [{"apiVersion": f"{_RBAC}/v1", **thing} for thing in made]
    control_plane.apply(things)
    with closing(control_plane.client(control_plane.user_kubeconfig(user))) as client:
        # The binding of `edit` was stored last, so the other one is in force with it.
        wait_granted(client, "/api/v1/pods?limit=1")
        yield client
    for thing in things:
        control_plane.api.delete(control_plane.api.path_of(thing)).expect()


@pytest.fixture
def volcanos(control_plane: ControlPlane, installation: Installation, maker: ApiClient) -> Iterator[str]:
    """The namespace that Volcano would have, made by the tenant; Volcano is not here."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": VOLCANO}}
    maker.create(namespace).expect(201)
    account = f"/api/v1/namespaces/{VOLCANO}/serviceaccounts/default"
    wait_for("pods can be created", lambda: control_plane.api.get(account).status == 200)
    yield VOLCANO
    control_plane.api.delete(control_plane.api.path_of(namespace)).expect()


def tried(maker: ApiClient, thing: Object) -> Answer:
    return maker.create({**thing, "metadata": {**thing["metadata"], "namespace": VOLCANO}})


def test_volcanos_namespace_is_under_quota_like_any_other(
    control_plane: ControlPlane, volcanos: str, maker: ApiClient
) -> None:
    """Gated when it asks, refused when it goes round the gate, protected while it waits; what asks for nothing is let be."""
    stored = tried(maker, card_pod("cards", "NVIDIA-H200", "default")).expect(201)
    assert stored["spec"]["schedulingGates"] == [{"name": names.GATE}]
    answer = tried(maker, share_pod("shares", 30, 1024, nodeName="m1"))
    assert answer.status >= 400
    assert "spec.nodeName must not be set" in answer.body["message"]
    path = f"/api/v1/namespaces/{volcanos}/pods/cards"
    opened = maker.patch(path, {"spec": {"schedulingGates": None}})
    assert opened.status == 422 or "lifted by the quota controller only" in opened.body["message"]
    assert opened.status >= 400
    record = {"metadata": {"annotations": {names.ASSIGNED_ANNOTATION: "{}"}}}
    assert maker.patch(path, record).status in (403, 422)
    tried(maker, pod("scheduler", limits={"cpu": "1"})).expect(201)
    (gpu,) = [tried(maker, pod("gpu", limits={GPU: 1})).expect(201)]
    assert "schedulingGates" not in gpu["spec"]
