"""Admission: what the API server asks before it stores an object, answered by pure functions.

A verdict is about the object alone, never about present usage: what is malformed or can never mean anything is
refused, all of it in one message; what may become right later is admitted with a warning.
"""
