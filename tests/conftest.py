"""Hypothesis profiles; chosen by `--hypothesis-profile`, else `ci` where the environment has CI set, else `dev`."""

import asyncio
import os

from hypothesis import settings

# No deadline: the machines that run this are shared, and a slow example is not a wrong one.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=200, print_blob=True)
settings.register_profile("nightly", deadline=None, max_examples=5000, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# The loop-time plugin asks the policy for the current loop before every test, a synchronous one included. Where none
# was ever set, Python makes one then, and nobody closes it; where it was set to none, there is none.
asyncio.set_event_loop(None)
