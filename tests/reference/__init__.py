"""Slow, plain references for the fast routines.

Each follows the definition line by line, one token or one pair at a time, with NumPy and SciPy
only. Nothing of the package under test is imported here, so that no mistake can be shared.
"""
