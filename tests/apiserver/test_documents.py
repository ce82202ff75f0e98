"""Every manifest that the pages show is one that an API server takes, with cardquota in front of it."""

from typing import Any

import pytest

from tests.apiserver.cluster import Cluster
from tests.builders.documents import is_object, shown

MISTAKE = "mistake"
"""The name of what is shown to be refused: tests/apiserver/test_quickstart.py sees to that."""
OWN_KIND = "batch.example.com/v1"
"""A kind that only the reader's cluster would have: tests/apiserver/test_workload_kinds.py defines it and applies one."""
ALPHA = "scheduling.k8s.io/v1alpha2"
"""A version that this control plane does not serve: tests/apiserver/test_kubernetes_groups.py applies what is shown of it."""
MANIFESTS = [
    (where, document)
    for where, document in shown()
    if is_object(document)
    and document["metadata"]["name"] != MISTAKE
    and document["apiVersion"] not in (OWN_KIND, ALPHA)
]


@pytest.mark.parametrize(
    ("where", "document"), MANIFESTS, ids=[f"{where}-{document['kind']}" for where, document in MANIFESTS]
)
def test_a_manifest_of_the_pages_is_taken(cluster: Cluster, where: str, document: dict[str, Any]) -> None:
    answer = cluster.try_create(document, dryRun="All")
    assert answer.status == 201, f"{where}: {answer.body}"


def test_there_are_manifests_to_look_at() -> None:
    assert {document["kind"] for _, document in MANIFESTS} >= {"Queue", "Pod", "Deployment", "Namespace"}
