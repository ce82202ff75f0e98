"""Answers for people: why a pod waits, what would help, when it may start.

Each is got from the books and the judge by which the leader decides, so that none is another opinion.
"""
