"""Pods as the mutating webhook and the controller would leave them, and attempts to edit them."""

import secrets
from collections.abc import Mapping

from core import names
from hack.controlplane import Answer, ApiClient, ControlPlane


class Pods:
    """Makes the pods of one test."""

    def __init__(self, plane: ControlPlane, namespace: str, controller: ApiClient) -> None:
        self._plane = plane
        self._namespace = namespace
        self._controller = controller

    def make(
        self,
        annotations: Mapping[str, str] | None = None,
        *,
        gates: tuple[str, ...] = (names.GATE,),
        limits: Mapping[str, int] | None = None,
        managed: bool = True,
        records: Mapping[str, str] | None = None,
    ) -> str:
        """Create a pod and return its path; `records` are added by the controller afterwards."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"p-{secrets.token_hex(4)}",
                "namespace": self._namespace,
                "annotations": dict(annotations or {}),
                "labels": {names.MANAGED_LABEL: "true"} if managed else {},
            },
            "spec": {
                "schedulerName": "nobody",
                "schedulingGates": [{"name": gate} for gate in gates],
                "containers": [{"name": "c", "image": "none", "resources": {"limits": dict(limits or {})}}],
            },
        }
        self._plane.api.create(pod).expect(201)
        path = self._plane.api.path_of(pod)
        if records:
            self._controller.patch(path, {"metadata": {"annotations": dict(records)}}).expect()
        return path


def annotate(client: ApiClient, path: str, **annotations: str | None) -> Answer:
    """Merge-patch annotations; the keys are given as constants' values through `**{...}`."""
    return client.patch(path, {"metadata": {"annotations": annotations}})


def assert_denied(answer: Answer, *words: str) -> None:
    assert answer.status == 403, answer.body
    assert answer.body["reason"] == "Forbidden"
    for word in words:
        assert word in answer.body["message"]
