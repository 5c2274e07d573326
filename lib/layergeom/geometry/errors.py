"""What the mathematics refuses, and what it warns of."""


class GeometryError(ValueError):
    """An input for which the measure is not defined; the message names the values."""


class UndefinedCorrelationWarning(UserWarning):
    """A correlation with a constant vector: it is NaN, to be shown as a gap and never as 0."""
