"""Books of devices with queues and claims in them, and questions to them."""

import json
from typing import Any

from core import names
from core.dra.amounts import thousandths
from core.dra.book import DeviceBook
from core.objects import Claim, ClaimTemplate, Queue
from core.settings import DraSettings
from core.stage import Stage
from tests.builders import a_pod, a_queue
from tests.builders.claims import ClaimBuilder, a_claim, a_template
from tests.builders.objects import PodBuilder, QueueBuilder

WAITING, RESERVED, ALLOCATED = Stage.WAITING, Stage.RESERVED, Stage.ALLOCATED


def limited(name: str, count: int, device_class: str = "gpu") -> QueueBuilder:
    return a_queue(name).devices({"capability": {device_class: {"count": count}}})


def gpus(name: str, count: int = 1) -> ClaimBuilder:
    return a_claim(name).exactly("r", "gpu", count=count)


def holding(pod: str, claim: str) -> PodBuilder:
    return a_pod(pod).claim("dev", name=claim)


def asked(pod: str, claim: str, count: int = 1, *, unasked: bool = False) -> PodBuilder:
    """One that was let in with this claim on record, or has it on record because it runs with it."""
    mark = {"unasked": "true"} if unasked else {}
    entry = {"uid": f"uid-ml-{claim}", **mark, "deviceclass/gpu": str(count)}
    return holding(pod, claim).charged("q").annotation(names.CLAIMS_ANNOTATION, json.dumps({"dev": entry}))


def a_book(*objects: Queue | Claim | ClaimTemplate, **settings: Any) -> DeviceBook:
    book = DeviceBook(DraSettings.model_validate(settings))
    for each in objects:
        match each:
            case Queue():
                book.put_queue(each)
            case Claim():
                book.put_claim(each)
            case ClaimTemplate():
                book.put_template(each)
    return book


def counts(book: DeviceBook, queue: str) -> tuple[int, int, int]:
    """Waiting, reserved and allocated devices of the class `gpu`."""
    sums = (book.accounts.waiting(queue), book.accounts.reserved(queue), book.accounts.allocated(queue))
    found = [thousandths(each).get("deviceclass/gpu", 0) // 1000 for each in sums]
    return found[0], found[1], found[2]


def why(book: DeviceBook, pod: PodBuilder, queue: str = "q") -> tuple[str, str]:
    shortfall = book.obstacle(pod.view(), queue) or book.excess(pod.view(), queue)
    return (shortfall.code, shortfall.message) if shortfall is not None else ("", "")


TEMPLATE = a_template("t").exactly("r", "gpu", count=2).view()
