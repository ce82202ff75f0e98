"""What `verify` says of a live installation, from the objects that it has read."""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli import wholeness
from cli.inspection import Inspection
from cli.state import State
from core.settings import Settings
from kube import pki

NOW = datetime.now(UTC)
CURRENT = base64.b64encode(pki.issue_ca(NOW).certificate).decode()
OLD = base64.b64encode(pki.issue_ca(NOW - timedelta(days=10_000)).certificate).decode()
PAGE = """\
# TYPE volcano_queue_card_allocated gauge
volcano_queue_card_allocated{queue_name="q",card="A"} 2.0
# TYPE cardquota_ledger_drift gauge
cardquota_ledger_drift{kind="pod"} 0.0
"""


def entry(name: str, bundle: str | None = CURRENT, path: str = "/x") -> dict[str, Any]:
    client: dict[str, Any] = {"service": {"name": "s", "path": path}}
    return {"name": f"{name}.cardquota.io", "clientConfig": client | ({"caBundle": bundle} if bundle else {})}


def configurations(*more: dict[str, Any], hook: str = "/mutate/bindings/secret") -> dict[str, Any]:
    return {
        "mutating": {"webhooks": [entry("pods"), entry("queue-status"), entry("bindings", path=hook)]},
        "validating": {"webhooks": [entry("pods"), entry("queues"), *more]},
    }


def named(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


POLICIES = tuple(named(f"cardquota-{name}") for name in ("gate", "records", "create", "deletion", "eviction"))
BINDINGS = tuple(
    named("x", policyName=policy["metadata"]["name"], validationActions=["Deny"]) for policy in POLICIES
)


def replica(image: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/version": "1"}
    return {"metadata": {"name": image, "labels": labels}, "spec": {"containers": [{"image": image}]}}


def inspected(**fields: Any) -> Inspection:
    whole = {
        "configurations": configurations(),
        "policies": POLICIES,
        "bindings": BINDINGS,
        "deployments": (),
        "pods": (replica("i"),),
        "probe": {"spec": {"schedulingGates": [{"name": "cardquota.io/quota"}]}},
        "namespace": "ml",
        "page": PAGE,
    }
    return Inspection(**{**whole, **fields})


def told(found: Inspection, own: dict[tuple[str, str], int] | None = None) -> dict[str, tuple[str, str]]:
    counted = {("q", "A"): 2000} if own is None else own
    return {
        verdict.check: (verdict.result, verdict.text)
        for verdict in (*wholeness.of(found, Settings()), *wholeness.books(found, counted))
        if verdict.result != "ok"
    }


def test_a_whole_installation() -> None:
    assert told(inspected()) == {}


@pytest.mark.parametrize(
    ("fields", "check", "result", "words"),
    [
        (
            {"configurations": {"mutating": None, "validating": configurations()["validating"]}},
            "webhooks",
            "wrong",
            "cardquota-mutating does not exist",
        ),
        (
            {"configurations": {**configurations(), "validating": {"webhooks": []}}},
            "webhooks",
            "wrong",
            "cardquota-validating has no entry queues.cardquota.io",
        ),
        ({"configurations": configurations(hook="")}, "webhooks", "wrong", "has no path yet"),
        (
            {"configurations": configurations(entry("x", None))},
            "certificates",
            "wrong",
            "validating x.cardquota.io has no caBundle",
        ),
        (
            {"configurations": configurations(entry("x", OLD))},
            "certificates",
            "wrong",
            "no certificate that is valid now",
        ),
        (
            {"configurations": configurations(entry("x", "%"))},
            "certificates",
            "wrong",
            "no certificate that is valid now",
        ),
        ({"policies": POLICIES[1:]}, "policies", "wrong", "cardquota-gate does not exist"),
        ({"bindings": BINDINGS[1:]}, "policies", "wrong", "cardquota-gate is not bound"),
        (
            {
                "bindings": (
                    named("x", policyName="cardquota-gate", validationActions=["Warn"]),
                    *BINDINGS[1:],
                )
            },
            "policies",
            "wrong",
            "cardquota-gate is not bound",
        ),
        ({"policies": ()}, "policies", "wrong", "there are none, and no webhook protects"),
        ({"probe": {"spec": {}}}, "admission", "wrong", "would get no gate in namespace ml; is it exempt?"),
        (
            {"probe": None, "probe_failure": 'failed calling webhook "pods.cardquota.io": x'},
            "admission",
            "wrong",
            "cannot be created",
        ),
        ({"probe": None, "probe_failure": "exceeded quota"}, "admission", "unknown", "exceeded quota"),
        ({"pods": (replica("i"), replica("j"))}, "versions", "wrong", "several at work: 1 (i), 1 (j)"),
        (
            {"deployments": (named("cardquota-webhook", replicas=2),)},
            "versions",
            "wrong",
            "none of the 2 replicas of cardquota-webhook is available",
        ),
        ({"pods": ()}, "versions", "unknown", "no pod"),
        ({"page": None, "page_failure": "403"}, "leader's books", "unknown", "403"),
        (
            {"page": PAGE.replace("2.0", "3.0")},
            "leader's books",
            "wrong",
            "queue q: 3 of A, and its pods use 2",
        ),
        ({"page": PAGE.replace("0.0", "4.0")}, "leader's books", "wrong", "4 places"),
        (
            {"books": {"queues": {"q": {"allocated": {"A": "3"}}}}},
            "leader's books",
            "wrong",
            "queue q: 3 of A, and its pods use 2",
        ),
        (
            {"books": {"queues": {"q": {"allocated": {"A": "2"}}}, "drift": 1}},
            "leader's books",
            "wrong",
            "its own audit has found 1 places",
        ),
        (
            {"books": {"queues": {"other": {}}}},
            "leader's books",
            "wrong",
            "queue q: 0 of A, and its pods use 2",
        ),
        ({"books": {"queues": {"q": {"allocated": {"A": "x"}}}}}, "leader's books", "unknown", "no amount"),
        ({"page": "<html>"}, "leader's books", "unknown", "cannot be read"),
        ({"pods": None, "withheld": {"versions": "403"}}, "versions", "unknown", "403"),
        ({"policies": None, "withheld": {"policies": "403"}}, "policies", "unknown", "403"),
    ],
)
def test_each_thing_that_is_wrong_or_cannot_be_seen(
    fields: dict[str, Any], check: str, result: str, words: str
) -> None:
    found = told(inspected(**fields))
    assert list(found) == [check]
    assert found[check][0] == result
    assert words in found[check][1]


def test_where_there_are_no_entries_nothing_is_said_of_their_certificates() -> None:
    """After an uninstallation that left the rest, for one."""
    found = told(inspected(configurations={"mutating": None, "validating": {"webhooks": []}}))
    assert found["webhooks"][0] == "wrong"
    assert found["certificates"] == ("unknown", "there is no entry that could have one")


def test_devices_and_shares_are_compared_by_what_the_leader_answers() -> None:
    own = {("q", "A"): 2000, ("q", "deviceclass/gpu"): 1000}
    answer = {"queues": {"q": {"allocated": {"A": "2", "deviceclass/gpu": "1"}}}, "drift": None}
    assert told(inspected(books=answer), own) == {}
    answer["queues"] = {"q": {"allocated": {"A": "2"}}}
    assert told(inspected(books=answer), own)["leader's books"] == (
        "wrong",
        "queue q: 0 of deviceclass/gpu, and its pods use 1",
    )
    # Its metrics say nothing of devices, so nothing is missing there.
    assert told(inspected(), own) == {}


def test_the_webhook_may_protect_what_policies_would() -> None:
    served = configurations(entry("protection.pods"))
    assert told(inspected(policies=(), bindings=(), configurations=served)) == {}


def test_what_may_not_be_read_is_unknown() -> None:
    found = told(inspected(configurations=None, withheld={"webhook configurations": "403"}))
    assert {check: result for check, (result, _) in found.items()} == {
        "webhooks": "unknown",
        "certificates": "unknown",
    }


def test_who_may_not_read_the_installation_is_told_what_is_not_known_of_it() -> None:
    """Each line that others get is there; only where nothing is installed is there no more to say."""
    told = wholeness.of_state(replace(State(), settings_hidden=True))
    assert [(one.check, one.result) for one in told] == [
        ("settings", "unknown"),
        ("leader", "unknown"),
        ("usage over time", "unknown"),
    ]
    assert [(one.check, one.result) for one in wholeness.of_state(State())] == [("settings", "wrong")]
