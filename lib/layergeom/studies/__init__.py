"""The few expensive results that several notebooks share: computed once, stored, verified."""

from layergeom.studies.fits import BASELINES, CLASSES, BlockUpdate, FitsStudy, check_class
from layergeom.studies.pga import LEVELS, PGAProfile, PGAStudy
from layergeom.studies.settings import SIZES, Settings, Sizes, named_sizes
from layergeom.studies.states import Session, States
from layergeom.studies.updates import UpdatesStudy

__all__ = [
    "BASELINES",
    "CLASSES",
    "LEVELS",
    "SIZES",
    "BlockUpdate",
    "FitsStudy",
    "PGAProfile",
    "PGAStudy",
    "Session",
    "Settings",
    "Sizes",
    "States",
    "UpdatesStudy",
    "check_class",
    "named_sizes",
]
