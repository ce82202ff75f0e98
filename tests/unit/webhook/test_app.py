"""The admission endpoints over HTTP and TLS."""

import io
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from core import names, reasons
from core.admission.dispatch import PATHS
from core.admission.request import NOTHING_LISTED, ClusterView
from core.settings import Settings
from kube import pki
from kube.admission.metrics import ReviewMetrics
from kube.metrics import Metrics
from kube.serving import Server
from kube.tls import ServingCertificate, client_context
from tests.unit.core.admission.samples import CONTROLLER, TENANT, a_card_pod, a_pod, a_queue, a_view, changed
from tests.unit.webhook.reviews import UID, a_queue_status_review, a_review, body, patch_of
from webhook.process import make_app

Client = TestClient[Any, Any]
JSON = {"Content-Type": "application/json"}


class Bench:
    """An application with its own registry, and a client for it."""

    def __init__(self, view: Callable[[], ClusterView]) -> None:
        self.registry = CollectorRegistry()
        self.app = make_app(Settings(), view, frozenset({CONTROLLER}), metrics=ReviewMetrics(self.registry))
        self.client: Client = TestClient(TestServer(self.app))

    async def post(self, path: str, content: bytes, headers: dict[str, str] = JSON) -> tuple[int, bytes]:
        async with self.client.post(path, data=io.BytesIO(content), headers=headers) as response:
            return response.status, await response.read()

    async def review(self, path: str, review: dict[str, Any]) -> dict[str, Any]:
        status, content = await self.post(path, body(review))
        assert status == 200, content
        answer: dict[str, Any] = orjson.loads(content)
        assert answer["response"]["uid"] == UID
        response: dict[str, Any] = answer["response"]
        return response

    def counted(self, path: str, verdict: str, code: str = "") -> float | None:
        labels = {"path": path, "verdict": verdict, "code": code}
        return self.registry.get_sample_value("cardquota_admission_requests_total", labels)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench(a_view)
    async with made.client:
        yield made


async def test_a_pod_is_patched_and_counted(bench: Bench) -> None:
    response = await bench.review("/mutate/pods", a_review(a_card_pod()))
    assert response["allowed"] is True
    assert patch_of(response) == [
        {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": names.GATE}]},
        {"op": "add", "path": "/metadata/labels", "value": {names.MANAGED_LABEL: "true"}},
    ]
    assert bench.counted("/mutate/pods", "patched") == 1
    await bench.review("/mutate/pods", a_review(a_pod()))
    assert bench.counted("/mutate/pods", "allowed") == 1
    seconds = "cardquota_admission_duration_seconds_count"
    assert bench.registry.get_sample_value(seconds, {"path": "/mutate/pods"}) == 2


async def test_a_bad_pod_is_denied_and_counted_by_its_reason(bench: Bench) -> None:
    response = await bench.review("/validate/pods", a_review(a_card_pod("A||B")))
    assert response["allowed"] is False
    assert response["status"]["code"] == 400
    assert response["status"]["message"].startswith("Pod ml/train is refused: metadata.annotations[")
    assert bench.counted("/validate/pods", "denied", reasons.CARD_NAME_MALFORMED) == 1


async def test_each_path_applies_its_own_rules_only(bench: Bench) -> None:
    """The API server combines the answers; a patch from a validating webhook would be an error."""
    assert (await bench.review("/mutate/pods", a_review(a_card_pod("A||B"))))["allowed"] is True
    assert "patch" not in await bench.review("/validate/pods", a_review(a_card_pod()))


async def test_warnings_travel_with_the_answer(bench: Bench) -> None:
    response = await bench.review("/validate/pods", a_review(a_card_pod("NVIDIA-H2OO")))
    assert response["allowed"] is True
    assert "did you mean NVIDIA-H200?" in response["warnings"][0]


async def test_who_asks_decides_over_protected_things(bench: Bench) -> None:
    gated = a_card_pod(gated=True)
    lifted = changed(gated, "spec", schedulingGates=None)
    for username, allowed in (("jane", False), (CONTROLLER, True)):
        review = a_review(lifted, operation="UPDATE", oldObject=gated, userInfo={"username": username})
        assert (await bench.review("/validate/pods", review))["allowed"] is allowed


async def test_queues_workloads_and_queue_status_have_their_paths(bench: Bench) -> None:
    queue = a_review(a_queue("{"), group="scheduling.volcano.sh", resource="queues", version="v1beta1")
    assert (await bench.review("/validate/queues", queue))["allowed"] is False
    pod = a_card_pod("A|")
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": {"metadata": pod["metadata"], "spec": pod["spec"]}},
    }
    for path in ("/validate/workloads", "/validate/deployments"):
        review = a_review(deployment, group="apps", resource="deployments")
        assert (await bench.review(path, review))["allowed"] is False
    old, new = a_queue(status={"allocated": {"NVIDIA-H200": "1"}}), a_queue(status={"allocated": {}})
    response = await bench.review("/mutate/queue-status", a_queue_status_review(old, new))
    assert patch_of(response) == [{"op": "add", "path": "/status/allocated/NVIDIA-H200", "value": "1"}]
    untouched = await bench.review("/mutate/queue-status", a_queue_status_review(old, new, "cardquota"))
    assert "patch" not in untouched


async def test_each_refusal_leaves_a_line_in_the_log_and_nothing_of_the_object(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Who was refused what, and by which rules; the words may quote what somebody wrote."""
    with caplog.at_level(logging.INFO):
        for number in range(10):
            review = a_review(a_card_pod("secret-word|"), name=f"train-{number}", dryRun=number == 9)
            assert (await bench.review("/validate/pods", review))["allowed"] is False
        assert (await bench.review("/validate/pods", a_review(a_card_pod())))["allowed"] is True
    records = [vars(record) for record in caplog.records if record.name == "kube.admission.endpoint"]
    assert [record["object"] for record in records] == [f"Pod ml/train-{number}" for number in range(10)]
    assert {(record["message"], record["user"], record["operation"]) for record in records} == {
        ("refused", TENANT, "CREATE")
    }
    assert all(record["codes"] == [reasons.CARD_NAME_MALFORMED] for record in records)
    assert [record["dry_run"] for record in records] == [False] * 9 + [True]
    assert "secret-word" not in str(records)


@pytest.mark.parametrize("path", sorted(PATHS))
async def test_every_path_answers_bad_bytes_with_400(bench: Bench, path: str) -> None:
    for content, words in ((b"", b"empty"), (b"{", b"JSON"), (b"[]", b"object"), (b"{}", b"kind")):
        status, text = await bench.post(path, content)
        assert (status, words in text) == (400, True)
    assert bench.counted(path, "failed", "400") == 4


async def test_another_review_version_is_named(bench: Bench) -> None:
    review = {**a_review(a_pod()), "apiVersion": "admission.k8s.io/v1beta1"}
    status, text = await bench.post("/mutate/pods", body(review))
    assert status == 400
    assert b"admission.k8s.io/v1beta1" in text


async def test_a_resource_at_a_foreign_path_is_a_mistake_of_the_configuration(bench: Bench) -> None:
    review = a_review({"kind": "Service"}, resource="services", group="x" * 500)
    status, text = await bench.post("/mutate/pods", body(review))
    assert status == 400
    assert b"/mutate/pods does not serve services" in text
    assert len(text) < 200
    assert (await bench.review("/validate/pods", a_review(a_pod(), operation="DELETE")))["allowed"] is True


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/yaml"]
)
async def test_another_content_type_is_refused(bench: Bench, content_type: str) -> None:
    status, text = await bench.post("/mutate/pods", body(a_review(a_pod())), {"Content-Type": content_type})
    assert status == 415
    assert content_type.encode() in text


async def test_a_charset_does_no_harm(bench: Bench) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    assert (await bench.post("/mutate/pods", body(a_review(a_pod())), headers))[0] == 200


async def test_only_post_is_served(bench: Bench) -> None:
    async with bench.client.get("/mutate/pods") as response:
        assert response.status == 405
    assert (await bench.post("/mutate/bindings", b"{}"))[0] == 404


async def test_a_body_over_the_limit_is_refused_and_a_big_one_is_not(bench: Bench) -> None:
    big = a_card_pod(annotations={f"example.com/{number}": "x" * 1000 for number in range(3 * 1024)})
    assert (await bench.post("/mutate/pods", body(a_review(big))))[0] == 200
    status, text = await bench.post("/mutate/pods", b" " * (8 * 2**20 + 1))
    assert (status, b"larger than 8388608 bytes" in text) == (413, True)
    assert bench.counted("/mutate/pods", "failed", "413") == 1


async def test_an_unexpected_failure_is_500_logged_with_uid_and_without_the_object(
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = "s3" + "cret"

    def broken() -> ClusterView:
        raise KeyError(secret)

    bench = Bench(broken)
    pod = a_card_pod(annotations={"example.com/password": secret})
    async with bench.client:
        with caplog.at_level(logging.DEBUG):
            status, text = await bench.post("/validate/pods", body(a_review(pod)))
    assert status == 500
    assert secret.encode() not in text
    (record,) = [record for record in caplog.records if record.name == "kube.admission.endpoint"]
    assert vars(record)["uid"] == UID
    assert vars(record)["error"] == "KeyError"
    assert "broken" in vars(record)["where"]
    assert not any(secret in str(vars(record)) for record in caplog.records)
    assert bench.counted("/validate/pods", "failed", "500") == 1


async def test_the_view_is_asked_for_with_each_request() -> None:
    views = [NOTHING_LISTED]
    bench = Bench(lambda: views[0])
    pod = a_pod({names.CARD_NAME_ANNOTATION: "NVIDIA-H200"})
    async with bench.client:
        assert (await bench.review("/validate/pods", a_review(pod)))["allowed"] is True
        views[0] = a_view()
        assert (await bench.review("/validate/pods", a_review(pod)))["allowed"] is False


@hypothesis_settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(sorted(PATHS)),
    st.sampled_from(["metadata", "spec", "status"]),
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    ),
)
async def test_no_object_makes_a_path_fail_with_500(path: str, part: str, value: Any) -> None:
    bench = Bench(a_view)
    rule = PATHS[path][0]
    raw = {"kind": rule.kind, "metadata": {"name": "x"}, "spec": {}, part: value}
    async with bench.client:
        for operation in ("CREATE", "UPDATE"):
            review = a_review(
                raw,
                group=rule.group,
                resource=rule.resource,
                operation=operation,
                oldObject={"metadata": {}},
                subResource=min(rule.subresources),
            )
            status, text = await bench.post(path, body(review))
            assert status == 200, text


async def test_the_round_trip_over_tls_survives_a_new_certificate() -> None:
    """As in the process: the pair is swapped in the context that the server was started with."""
    now = datetime.now(UTC)
    first = pki.renewed(None, ["localhost", "127.0.0.1"], now)
    second = pki.renewed(None, ["localhost", "127.0.0.1"], now)
    serving = ServingCertificate(Metrics(CollectorRegistry()))
    app = make_app(Settings(), a_view, frozenset(), metrics=ReviewMetrics(CollectorRegistry()))
    server = Server(app, "127.0.0.1", 0, serving.context)
    await server.start()
    try:
        for bundle, stranger in ((first, second), (second, first)):
            assert serving.load(bundle.leaf.certificate, bundle.leaf.key)
            url = f"https://localhost:{server.port}/mutate/pods"
            answer = await _post_tls(url, bundle.ca_certificates)
            assert orjson.loads(answer)["response"]["allowed"] is True
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await _post_tls(url, stranger.ca_certificates)
    finally:
        await server.stop()


async def _post_tls(url: str, ca: bytes) -> bytes:
    context: ssl.SSLContext = client_context(ca)
    connector = aiohttp.TCPConnector(ssl=context)
    timeout = aiohttp.ClientTimeout(total=10)
    content = body(a_review(a_card_pod()))
    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
        session.post(url, data=content, headers=JSON) as response,
    ):
        assert response.status == 200
        return await response.read()
