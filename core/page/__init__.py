"""The status page: what the commands say of a cluster, chosen for one reader and written as HTML.

`board` looks at the books once for all readers, `selection` makes a `View` of what one reader asks for and may see, and `html`
writes that. A view has no more rows than fit a page, however large the cluster is.
"""
