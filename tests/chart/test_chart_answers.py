"""The port on which the leader answers people: who reaches it, and the rights that it takes."""

from typing import Any

from tests.chart.conftest import NAMESPACE, Render, Rendered

PROXY = {
    "apiGroups": [""],
    "resources": ["services/proxy"],
    "resourceNames": ["https:cardquota-controller:answers"],
    "verbs": ["get"],
}
REVIEWS = [
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
]
OFF = {"controller": {"answers": {"enabled": False}}}


def readers(rendered: Rendered) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = rendered.one("Role", "cardquota-queue-reader")["rules"]
    return rules


def reviews(rendered: Rendered) -> list[dict[str, Any]]:
    rules = rendered.one("ClusterRole", "cardquota-controller")["rules"]
    return [rule for rule in rules if rule["apiGroups"][0].startswith("auth")]


def container(rendered: Rendered) -> dict[str, Any]:
    pod = rendered.one("Deployment", "cardquota-controller")["spec"]["template"]["spec"]
    first: dict[str, Any] = pod["containers"][0]
    return first


def test_whoever_reads_queues_reaches_that_port_of_the_service_and_no_other(defaults: Rendered) -> None:
    assert PROXY in readers(defaults)
    (service,) = (rule for rule in readers(defaults) if rule["resources"] == ["services/proxy"])
    scheme, name, port = service["resourceNames"][0].split(":")
    found = defaults.one("Service", "cardquota-controller")
    assert (scheme, name) == ("https", found["metadata"]["name"])
    assert {"name": port, "port": 8444, "targetPort": "answers"} in found["spec"]["ports"]
    assert {"name": "answers", "containerPort": 8444} in container(defaults)["ports"]


def test_whoever_reads_queues_is_told_where_the_release_is(defaults: Rendered, render: Render) -> None:
    """By the one role that they may look at, which knows nothing else; annotations of others stay beside it."""
    said = {"cardquota.io/installed-in": NAMESPACE}
    for rendered, more in ((defaults, {}), (render({"commonAnnotations": {"owner": "us"}}), {"owner": "us"})):
        assert rendered.one("ClusterRole", "cardquota-queue-reader")["metadata"]["annotations"] == said | more


def test_the_controller_may_ask_who_calls_and_what_the_caller_may_see(defaults: Rendered) -> None:
    assert reviews(defaults) == REVIEWS


def test_without_it_there_is_neither_port_nor_right(render: Render) -> None:
    rendered = render(OFF)
    assert reviews(rendered) == []
    assert not any(rule["resources"] == ["services/proxy"] for rule in readers(rendered))
    assert not any("answers" in argument for argument in container(rendered)["args"])
    assert "answers" not in str(container(rendered)["ports"])
    assert "answers" not in str(rendered.one("Service", "cardquota-controller"))
    assert "answers" not in str(rendered.one("NetworkPolicy", "cardquota-extender"))


def test_who_reaches_it_can_be_said(render: Render) -> None:
    servers = [{"ipBlock": {"cidr": "192.168.0.1/32"}}]
    rendered = render({"features": {"extender": False}, "controller": {"answers": {"allowFrom": servers}}})
    rules = rendered.one("NetworkPolicy", "cardquota-extender")["spec"]["ingress"]
    assert rules[-1] == {"ports": [{"port": "answers", "protocol": "TCP"}], "from": servers}
    assert [rule["ports"][0]["port"] for rule in rules] == ["metrics", "https", "answers"]


def test_the_status_page_is_there_only_if_it_is_asked_for(render: Render, defaults: Rendered) -> None:
    assert "--answers-page" not in container(defaults)["args"]
    shown = render({"controller": {"answers": {"page": True}}})
    assert "--answers-page" in container(shown)["args"]
    assert shown.one("ClusterRole", "cardquota-controller") == defaults.one(
        "ClusterRole", "cardquota-controller"
    )
    assert (
        "--answers-page"
        not in container(render({"controller": {"answers": {"enabled": False, "page": True}}}))["args"]
    )
