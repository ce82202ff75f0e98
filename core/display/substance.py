"""What of a message makes it worth an event: what somebody waits for, not the numbers of the moment.

Read off the message itself, so that it can be told of an event which another process wrote.
"""

import re
from functools import lru_cache
from typing import Final

from core import reasons
from core.catalogue.notes import message_of
from core.queues.whole import FEWER, LESS

_AMOUNT: Final = re.compile(
    # Names may be numbers too; they stand behind one of these words.
    r"(?<!Queue <)(?<!queue )(?<!PodGroup )(?<!gang )(?<!DeviceClass )(?<!insufficient <)(?<!of <)(?<!card <)"
    r"(?<![\w./-])-?\d+(?:\.\d+)?(?:e[+-]\d+)?(?: ?(?:[KMGTPE]i|[mkMGTPE]))?(?![\w/-]|\.\w)"
)
_USED: Final = re.compile(r"\bused <?[^\s,;>]+>?")


@lru_cache(maxsize=1024)
def substance(reason: str, message: str) -> str:
    """Equal for two messages of which the second is no news after the first.

    The way out at the end follows from the reason. Which node comes closest to having room changes all the time and is none; the limit of a queue that uses more than
    that is what its event is about.
    """
    message = message_of(reason, message)
    if reason == reasons.QUOTA_EXCEEDED:
        return f"{reason}: {_USED.sub('used #', message)}"
    if reason == reasons.NO_FREE_CARD:
        message = message.partition(";")[0]
    # What is left out for a limit of zero follows from a number.
    worded = message.replace(FEWER, "").replace(LESS, "")
    return f"{reason}: {_AMOUNT.sub('#', worded)}"
