"""What an entry of a webhook configuration says of trust."""

import base64

import pytest

from kube.webhook_entries import project

OURS, FORMER = b"-----BEGIN CERTIFICATE-----\nb3Vycw==\n-----END CERTIFICATE-----\n", b"former\n"
HOOK = "bindings.cardquota.io"


def entry(name: str, bundle: bytes) -> dict[str, object]:
    return {"name": name, "clientConfig": {"caBundle": base64.b64encode(bundle).decode()}}


@pytest.mark.parametrize(
    ("entries", "trusted"),
    [
        ([entry(HOOK, OURS)], True),
        ([entry(HOOK, FORMER + OURS)], True),
        ([entry(HOOK, FORMER)], False),
        ([entry(HOOK, b"")], False),
        ([{"name": HOOK, "clientConfig": {}}], False),
        ([entry("pods.cardquota.io", b""), entry(HOOK, OURS)], True),
        ([entry("pods.cardquota.io", OURS)], True),
        ([], True),
    ],
    ids=[
        "ours",
        "beside another",
        "another",
        "empty",
        "none",
        "a new entry of the webhook",
        "no such entry",
        "nothing",
    ],
)
def test_who_is_trusted_is_said_by_the_entry_that_calls_him(
    entries: list[dict[str, object]], trusted: bool
) -> None:
    """An entry that came with an upgrade has no trust until a leader of this version gives it some."""
    assert project({"webhooks": entries}).trust(OURS, HOOK) is trusted
