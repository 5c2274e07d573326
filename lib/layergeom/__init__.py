"""layergeom: the geometry of language models' layers, measured and reproduced."""

__version__ = "0.1.0"
