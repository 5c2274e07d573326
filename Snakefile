# What a profile's book is made of: one measurement a model, one page a (notebook, model), one book.
# `layergeom book` runs this; on a cluster, use Snakemake's own executors.

import shlex
import sys
from pathlib import Path

from layergeom.book import page_folder
from layergeom.models.sources import display_name
from layergeom.notebooks import output_path
from layergeom.profiles import read_profile
from layergeom.report.publish import slug

PROFILE = config.get("profile", "offline")
ROOT = Path(workflow.basedir)
CHOSEN = read_profile(ROOT, PROFILE)
LAYERGEOM = f"{shlex.quote(sys.executable)} -m layergeom"

# A page depends on the whole library: without this, an edited function would leave it as it is.
LIB = [str(p) for p in sorted((ROOT / "lib").rglob("*")) if p.suffix in (".py", ".yml")]
SPINE = [str(p) for p in sorted((ROOT / "book").rglob("*")) if p.is_file()]

MODELS = {slug(display_name(model)): model for model in CHOSEN.models}


def page(notebook, model):
    return str(output_path(page_folder(PROFILE), notebook, model))


wildcard_constraints:
    model="[A-Za-z0-9._-]+",


rule book:
    input:
        pages=[page(n, m) for n in CHOSEN.notebooks for m in CHOSEN.models],
        spine=SPINE + ["_config.yml", "_toc.yml"],
        profile=f"profiles/{PROFILE}.yml",
        lib=LIB,
    output:
        "_build/html/index.html",
    # The HTML folder holds one book at a time: another profile's book is out of date.
    params:
        profile=PROFILE,
    shell:
        "{LAYERGEOM} bind {params.profile:q}"


rule measure:
    input:
        profile=f"profiles/{PROFILE}.yml",
        lib=LIB,
    output:
        f"_build/measured/{PROFILE}/{{model}}",
    threads: workflow.cores
    params:
        profile=PROFILE,
        model=lambda wildcards: MODELS[wildcards.model],
    shell:
        "LAYERGEOM_THREADS={threads} OMP_NUM_THREADS={threads} "
        "{LAYERGEOM} measure {params.profile:q} {params.model:q} {output:q}"


rule page:
    input:
        notebook="notebooks/{section}/{notebook}.py",
        measured=f"_build/measured/{PROFILE}/{{model}}",
        lib=LIB,
    output:
        str(page_folder(PROFILE) / "{section}" / "{notebook}--{model}.ipynb"),
    threads: 1
    params:
        profile=PROFILE,
        model=lambda wildcards: MODELS[wildcards.model],
    shell:
        "LAYERGEOM_THREADS={threads} OMP_NUM_THREADS={threads} "
        "{LAYERGEOM} page {params.profile:q} {wildcards.section}/{wildcards.notebook} {params.model:q}"
