"""Keeps the loop-time plugin from leaving an event loop behind."""

import asyncio

# The plugin asks the policy for the current loop before every test, a synchronous one included. Where none was ever
# set, Python makes one then, and nobody closes it; where it was set to none, there is none.
asyncio.set_event_loop(None)
