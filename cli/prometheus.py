"""What a Prometheus has kept of usage over time."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from cli.errors import UnavailableError

if TYPE_CHECKING:
    import aiohttp

    from core.usage.report import Account, Points
    from core.usage.sums import Series

_POINTS: Final = 1_000
_STEP_S: Final = 1
_TIMEOUT_S: Final = 60.0
_BY: Final = "queue, card, namespace, exported_namespace, kind"
"""A Prometheus that keeps the label `namespace` for itself calls that of the series `exported_namespace`."""

_USED: Final = f"max by ({_BY}) (cardquota_card_seconds_total)"
_WAITED: Final = f"max by ({_BY}) (cardquota_card_waiting_seconds_total)"
_DEVICES: Final = 'label_replace(cardquota_queue_device_limit{dimension=""}, "card", "deviceclass/$1", "device_class", "(.+)")'
_QUOTA: Final = f"max by (queue_name, card) (volcano_queue_card_capacity or {_DEVICES})"


def account(url: str, since_s: int, now: int) -> "Account":
    """The last `since_s` seconds before `now`, which is in seconds since 1970. Raises UnavailableError."""
    return asyncio.run(_account(url.rstrip("/"), since_s, now))


async def _account(url: str, since_s: int, now: int) -> "Account":
    import aiohttp

    from core.usage.report import of_samples
    from core.usage.sums import What

    step = max(_STEP_S, -(-since_s // _POINTS))
    # Whole steps, so that the last one ends now; they begin with the one in which the time begins.
    start = now - step * -(-since_s // step)
    queries = {What.USED: _USED, What.WAITED: _WAITED, What.QUOTA: _QUOTA}
    samples = {}
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
        for what, query in queries.items():
            asked = {"query": query, "start": str(start), "end": str(now), "step": str(step)}
            samples[what] = list(_series(url, await _asked(session, url, asked)))
    if not samples[What.USED] and not samples[What.QUOTA]:
        raise UnavailableError(
            f"{url} has nothing of cardquota in this time; is it told to scrape the controllers?"
        )
    return of_samples(samples, start, now, step)


async def _asked(session: "aiohttp.ClientSession", url: str, asked: Mapping[str, str]) -> Any:
    import aiohttp
    import orjson

    try:
        async with session.get(f"{url}/api/v1/query_range", params=asked) as response:
            answer = orjson.loads(await response.read())
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise UnavailableError(f"{url} cannot be asked: {str(error) or type(error).__name__}") from error
    if not isinstance(answer, dict) or answer.get("status") != "success":
        text = answer.get("error") if isinstance(answer, dict) else None
        raise UnavailableError(f"{url} answers: {text or 'what is no Prometheus would'}")
    return answer


def _series(url: str, answer: Any) -> "Iterator[tuple[Series, Points]]":
    from core.usage.sums import Series

    try:
        for each in answer["data"]["result"]:
            labels = each["metric"]
            series = Series(
                labels.get("queue") or labels.get("queue_name", ""),
                labels.get("card", ""),
                labels.get("exported_namespace") or labels.get("namespace", ""),
                labels.get("kind", ""),
            )
            yield series, [(float(moment), float(value)) for moment, value in each["values"]]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UnavailableError(f"{url} answers what is no Prometheus would") from error
