"""The few expensive results that several notebooks share: computed once, stored, verified."""

from layergeom.studies.alternatives import alternatives
from layergeom.studies.bridge import BridgeStudy
from layergeom.studies.choices import ChoicesStudy
from layergeom.studies.components import ComponentsStudy
from layergeom.studies.convergence import ConvergenceStudy, compare_pairs
from layergeom.studies.fits import (
    BASELINES,
    CLASSES,
    CONTROLLED,
    BlockUpdate,
    FitsStudy,
    check_class,
)
from layergeom.studies.function_classes import function_classes
from layergeom.studies.lens import LensStudy
from layergeom.studies.neighbourhood import NeighbourhoodStudy
from layergeom.studies.pga import LEVELS, PGAProfile, PGAStudy
from layergeom.studies.probes import ProbeStudy
from layergeom.studies.scale import scale_profiles, scale_table
from layergeom.studies.settings import SIZES, Settings, Sizes, named_sizes
from layergeom.studies.spectral import SpectralStudy
from layergeom.studies.states import Session, States, open_session
from layergeom.studies.sub_blocks import SubBlocksStudy
from layergeom.studies.training import TrainingStudy
from layergeom.studies.updates import UpdatesStudy, middle_third
from layergeom.studies.updates_across import updates_overall, updates_profiles
from layergeom.studies.where import WhereStudy

__all__ = [
    "BASELINES",
    "CLASSES",
    "CONTROLLED",
    "LEVELS",
    "SIZES",
    "BlockUpdate",
    "BridgeStudy",
    "ChoicesStudy",
    "ComponentsStudy",
    "ConvergenceStudy",
    "FitsStudy",
    "LensStudy",
    "NeighbourhoodStudy",
    "PGAProfile",
    "PGAStudy",
    "ProbeStudy",
    "Session",
    "Settings",
    "Sizes",
    "SpectralStudy",
    "States",
    "SubBlocksStudy",
    "TrainingStudy",
    "UpdatesStudy",
    "WhereStudy",
    "alternatives",
    "check_class",
    "compare_pairs",
    "function_classes",
    "middle_third",
    "named_sizes",
    "open_session",
    "scale_profiles",
    "scale_table",
    "updates_overall",
    "updates_profiles",
]
