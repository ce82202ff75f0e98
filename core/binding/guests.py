"""The limit as a hard one: what is asked when a pod is bound, whatever its scheduler knew."""

from core.crossquota.book import GuestBook
from core.crossquota.filter import excess
from core.crossquota.guest import Guest, enabled, guest, held_back
from core.crossquota.quota import Quota
from core.objects import Pod
from core.refusal import Refusal
from core.settings import Settings


def guards_binds(settings: Settings) -> bool:
    """Whether any bind is looked at: `crossQuota.guardBind`, and a rule to guard."""
    return settings.cross_quota.guard_bind and enabled(settings)


def is_limited(pod: Pod, node: str, book: GuestBook, settings: Settings) -> bool:
    """Whether it depends on the others there if a pod may be bound to a node. To be asked only where binds are guarded.

    `pod` has the labels that CrossQuota's selector looks at.
    """
    return _limits(pod, node, book, settings) is not None


def bind_excess(pod: Pod, node: str, book: GuestBook, settings: Settings) -> Refusal | None:
    """Why a pod must not be bound to a node: only where `crossQuota.guardBind` says so.

    None for a pod or a node that the rule is not about. `book` must have every bind that was granted before; `pod` as for
    `is_limited`.
    """
    found = _limits(pod, node, book, settings) if guards_binds(settings) else None
    return None if found is None else excess(*found, book.used(node, but=pod.uid))


def _limits(pod: Pod, node: str, book: GuestBook, settings: Settings) -> tuple[Guest, Quota] | None:
    quota = book.quota(node)
    if quota is None or not held_back(pod):
        return None
    visitor = guest(pod, settings)
    return None if visitor is None else (visitor, quota)
