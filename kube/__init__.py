"""Everything that talks to an API server or serves it: client, informers, leader election, events, TLS, metrics.

Nothing here knows what a card or a queue is; it would serve another controller as well.
"""
