"""Who calls and what the caller may see: the API server is asked, by TokenReview and SubjectAccessReview.

Nothing is decided here. What the API server said is remembered for some seconds, so that somebody who asks again and again
costs it nothing more; a right that was taken away is seen after that time. Of tokens that it has said nothing about it is asked
so many in a second, those from each address in its turn: whoever makes tokens up waits for others, and they do not for him.
"""

import asyncio
import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Self, TypeVar

from core.objects import raw as read
from kube.client import Client
from kube.handshakes import Turns
from kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS

REMEMBERED_S: Final = 10.0
"""How long an answer of the API server counts."""
TOKENS: Final = 1024
"""Of so many tokens the answers are remembered; the one that was used the longest ago is forgotten first."""
RIGHTS: Final = 8192
"""Of so many questions about rights."""
NEW_TOKENS_PER_S: Final = 20.0
"""Tokens that nothing is remembered of, good or bad, are asked about so often at most, and as often from known addresses."""
_WAIT_S: Final = 4.0
"""How long one waits for its turn."""
WAIT_OF_ONE: Final = 40
"""So many of an address wait at a time; that many have their turn meanwhile, if there is nobody else."""
_TIMEOUT_S: Final = 5.0

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BusyError(Exception):
    """More is asked than is answered; to be tried again after a second."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whom the API server knows, with all that decides about rights."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Self:
        """As `shown` made it, and as a TokenReview says it."""
        extra = read.mapping(raw, "extra")
        return cls(
            read.text(raw, "username"),
            read.text(raw, "uid"),
            tuple(map(str, read.sequence(raw, "groups"))),
            tuple((key, tuple(map(str, read.sequence(extra, key)))) for key in sorted(extra)),
        )

    @property
    def shown(self) -> dict[str, Any]:
        """As JSON, in the words of a TokenReview."""
        return {
            "username": self.user,
            "uid": self.uid,
            "groups": list(self.groups),
            "extra": {key: list(values) for key, values in self.extra},
        }


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on objects of one kind; without a name on all of them, without a namespace in all."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


class Allowance:
    """Lets so many through in a second, and at most `burst` at once."""

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._left = burst
        self._at = 0.0

    def take(self, now: float) -> bool:
        """Whether one more may pass at this time."""
        self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._per_s)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Recent(Generic[K, V]):
    """Values for some seconds each, the `most` that were looked for last."""

    def __init__(self, most: int, life_s: float) -> None:
        self._most = most
        self._life_s = life_s
        self._values: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._values)

    def get(self, key: K, now: float) -> V | None:
        """The value, if it is not too old."""
        found = self._values.get(key)
        if found is None:
            return None
        if now - found[0] > self._life_s:
            del self._values[key]
            return None
        self._values.move_to_end(key)
        return found[1]

    def put(self, key: K, value: V, now: float) -> None:
        """Keeps a value; the one that nobody looked for the longest gives way."""
        self._values[key] = (now, value)
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)


class Callers:
    """Asks with the rights of this process: it needs `create` on both reviews."""

    def __init__(
        self, client: Client, clock: Callable[[], float] | None = None, *, per_s: float = NEW_TOKENS_PER_S
    ) -> None:
        self._client = client
        self._clock = clock
        self._known: Recent[bytes, tuple[Caller | None]] = Recent(TOKENS, REMEMBERED_S)
        self._rights: Recent[tuple[Caller, Right], bool] = Recent(RIGHTS, REMEMBERED_S)
        self._turns = Turns(strangers_per_s=per_s, known_per_s=per_s)
        self._waiting: Counter[str] = Counter()

    async def of_token(self, token: str, address: str = "") -> Caller | None:
        """Whose token it is; None where the API server would not let it in. `address` is where it came from.

        Raises BusyError while too many unknown ones come from there, or everywhere from too many addresses, and KubeError
        where the API server gives no answer.
        """
        # Whoever reads this memory is not to find tokens in it.
        key = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = self._known.get(key, self._now())
        if found is None:
            await self._turn(address)
            found = (await self._review(token),)
            self._known.put(key, found, self._now())
        if found[0] is not None:
            # Nobody there needs to wait for those who have nothing to show; that they may, too, is what turns are for.
            self._turns.know(address)
        return found[0]

    async def _turn(self, address: str) -> None:
        """Returns when a token from there may be asked about."""
        if self._waiting[address] >= WAIT_OF_ONE:
            raise BusyError
        turn = asyncio.Event()
        self._waiting[address] += 1
        take_back = self._turns.wait(address, turn.set)
        try:
            async with asyncio.timeout(_WAIT_S):
                await turn.wait()
        except TimeoutError:
            raise BusyError from None
        finally:
            take_back()
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]

    async def may(self, caller: Caller, right: Right) -> bool:
        """Whether the caller has a right. Raises KubeError."""
        key = (caller, right)
        found = self._rights.get(key, self._now())
        if found is None:
            found = await self._access(caller, right)
            self._rights.put(key, found, self._now())
        return found

    async def _review(self, token: str) -> Caller | None:
        body = _body("authentication.k8s.io/v1", "TokenReview", {"token": token})
        status = (await self._client.create(TOKEN_REVIEWS, body, timeout_s=_TIMEOUT_S)).get("status")
        known = read.mapping(status).get("authenticated") is True
        caller = Caller.read(read.mapping(status, "user"))
        return caller if known and caller.user else None

    async def _access(self, caller: Caller, right: Right) -> bool:
        spec = {
            "user": caller.user,
            "uid": caller.uid,
            "groups": list(caller.groups),
            "extra": {key: list(values) for key, values in caller.extra},
            "resourceAttributes": {
                "verb": right.verb,
                "group": right.group,
                "resource": right.resource,
                "namespace": right.namespace,
                "name": right.name,
            },
        }
        body = _body("authorization.k8s.io/v1", "SubjectAccessReview", spec)
        status = (await self._client.create(SUBJECT_ACCESS_REVIEWS, body, timeout_s=_TIMEOUT_S)).get("status")
        return read.mapping(status).get("allowed") is True and read.mapping(status).get("denied") is not True

    def _now(self) -> float:
        return (self._clock or asyncio.get_running_loop().time)()


def _body(api_version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec}
