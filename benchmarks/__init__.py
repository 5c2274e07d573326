"""Every measure beside the plain way of computing it, timed in one run.

The plain way is that of ``tests/reference``: SciPy's ``pdist`` and ``spearmanr`` for every
subspace, one dense solve for every token, one whole forward pass for every block and class.
Where that takes long it is timed on a part and scaled to the whole; its results on the part are
compared with ours.
"""
