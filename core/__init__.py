"""The rules of cardquota as pure functions: values in, decisions out.

Nothing here reads a clock, a file, the environment or the network; time and randomness are arguments.
"""
