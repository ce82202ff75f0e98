"""Bytes of a fuzzer's choosing through everything that reads what others wrote.

`targets` says what is fed and what must hold; `python -m tests.fuzz` searches with coverage feedback, and what it once found
lies under `kept`, which the ordinary test run goes through.
"""
