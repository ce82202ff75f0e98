"""A bind: what it asks for, whether it may be stored, and the records that it is stored with.

`review` reads a Binding and writes the answer, `binder` decides by the books: `quota` for cards and queue, `shares` for mGPU
cards, `core.crossquota.filter` for CrossQuota.
"""
