"""For how long a write may still be stored that nobody waits for any more.

Whoever gives away what such a write has taken, a lift or a bind, waits until the API server has given it up, and after that for
as long as its database may still come to it.
"""

from typing import Final

STORED_LATE_S: Final = 15.0
"""So long what the API server has given up, or answered with 500, may still be stored: its database may have taken in what is
not waited for any more, and stores that as soon as it can. It is the same for every write, at whatever moment of its time the
write was sent to the database: a webhook may have held it until the very end."""
