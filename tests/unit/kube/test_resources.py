import pytest

from kube import resources
from kube.resources import Resource


@pytest.mark.parametrize(
    ("resource", "address", "path"),
    [
        (resources.PODS, (), "/api/v1/pods"),
        (resources.PODS, ("a",), "/api/v1/namespaces/a/pods"),
        (resources.PODS, ("a", "p"), "/api/v1/namespaces/a/pods/p"),
        (resources.PODS, ("a", "p", "binding"), "/api/v1/namespaces/a/pods/p/binding"),
        (resources.NODES, (None, "n", "status"), "/api/v1/nodes/n/status"),
        (resources.QUEUES, (None, "q"), "/apis/scheduling.volcano.sh/v1beta1/queues/q"),
        (resources.EVENTS, ("a",), "/apis/events.k8s.io/v1/namespaces/a/events"),
        (resources.NODES, (None, "a/../b c%"), "/api/v1/nodes/a%2F..%2Fb%20c%25"),
    ],
)
def test_a_path_addresses_what_was_named(
    resource: Resource, address: tuple[str | None, ...], path: str
) -> None:
    """Collection, object and subresource, every name percent-encoded."""
    assert resource.path(*address) == path


@pytest.mark.parametrize(
    ("resource", "address"),
    [
        (resources.NODES, ("a",)),
        (resources.PODS, (None, "p")),
        (resources.PODS, ("a", None, "status")),
        (resources.PODS, ("a", "")),
        (resources.PODS, ("a", "..")),
    ],
)
def test_an_address_that_the_api_does_not_have_is_refused(
    resource: Resource, address: tuple[str | None, ...]
) -> None:
    """An empty or dotted name would otherwise reach another object or the whole collection."""
    with pytest.raises(ValueError, match=r"name|namespace|subresource"):
        resource.path(*address)


def test_a_resource_names_itself_as_kubectl_does() -> None:
    """Plural and group, and the apiVersion that its objects carry."""
    assert (str(resources.PODS), resources.PODS.api_version) == ("pods", "v1")
    assert str(resources.QUEUES) == "queues.scheduling.volcano.sh"
    assert resources.QUEUES.api_version == "scheduling.volcano.sh/v1beta1"
