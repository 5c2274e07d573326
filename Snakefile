# What a profile's book is made of: one measurement a model and one of what compares them, the pages
# of each notebook, one book. `layergeom book` runs this; on a cluster, use Snakemake's own executors.

import shlex
import sys
from pathlib import Path

from layergeom.book import page_folder
from layergeom.models.catalogue import is_trained
from layergeom.models.sources import display_name
from layergeom.notebooks import notebook_scope, output_path
from layergeom.profiles import read_profile
from layergeom.naming import ACROSS, slug

PROFILE = config.get("profile", "offline")
ROOT = Path(workflow.basedir)
CHOSEN = read_profile(ROOT, PROFILE)
LAYERGEOM = f"{shlex.quote(sys.executable)} -m layergeom"

# A page depends on the whole library: without this, an edited function would leave it as it is.
LIB = [str(p) for p in sorted((ROOT / "lib").rglob("*")) if p.suffix in (".py", ".yml")]
SPINE = [str(p) for p in sorted((ROOT / "book").rglob("*")) if p.is_file()]

# Written by `make bench`, if at all.
BENCHMARKS = sorted(str(path) for path in (ROOT / "_build" / "benchmarks").glob("*"))

MODELS = {slug(display_name(model)): model for model in CHOSEN.every_model}
SCOPES = {name: notebook_scope(ROOT, name) for name in CHOSEN.notebooks}
PER_MODEL = [name for name, scope in SCOPES.items() if scope == "per model"]
COMPARING = [name for name, scope in SCOPES.items() if scope == "across"]
MEASURED = f"_build/measured/{PROFILE}"
EVERY_MODEL = " ".join(map(shlex.quote, CHOSEN.every_model))


def page(notebook, subject):
    return str(output_path(page_folder(PROFILE), notebook, subject))


def cores_of(wildcards):
    # The networks trained here are too small to keep a second core busy: two models side by side are
    # done sooner than one after the other.
    return 1 if is_trained(MODELS[wildcards.model]) else workflow.cores


wildcard_constraints:
    model="[A-Za-z0-9._-]+",


# The comparison's page has a name of the same form.
ruleorder: comparison > page


rule book:
    input:
        pages=[page(n, m) for n in PER_MODEL for m in MODELS],
        comparisons=[page(n, ACROSS) for n in COMPARING],
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
        f"{MEASURED}/{{model}}",
    threads: cores_of
    params:
        profile=PROFILE,
        model=lambda wildcards: MODELS[wildcards.model],
    # One bar has a terminal for itself, two would write over each other.
    shell:
        "LAYERGEOM_THREADS={threads} OMP_NUM_THREADS={threads} "
        "LAYERGEOM_LINES=$(({threads} < {workflow.cores})) "
        "{LAYERGEOM} measure {params.profile:q} {output:q} {params.model:q}"


rule compare:
    input:
        [f"{MEASURED}/{model}" for model in MODELS],
    output:
        f"{MEASURED}/.across",
    threads: workflow.cores
    params:
        profile=PROFILE,
    shell:
        "LAYERGEOM_THREADS={threads} OMP_NUM_THREADS={threads} "
        "{LAYERGEOM} measure --across {params.profile:q} {output:q} {EVERY_MODEL}"


# A notebook's pages for all models share a kernel: starting one and importing takes longer than a
# page does.
rule page:
    input:
        notebook="notebooks/{section}/{notebook}.py",
        measured=[f"{MEASURED}/{model}" for model in MODELS],
        lib=LIB,
    output:
        [str(page_folder(PROFILE) / "{section}" / f"{{notebook}}--{model}.ipynb") for model in MODELS],
    threads: 1
    params:
        profile=PROFILE,
    shell:
        "LAYERGEOM_THREADS={threads} OMP_NUM_THREADS={threads} "
        "{LAYERGEOM} page {params.profile:q} {wildcards.section}/{wildcards.notebook} {EVERY_MODEL}"


rule comparison:
    input:
        notebook="notebooks/{section}/{notebook}.py",
        measured=f"{MEASURED}/.across",
        benchmarks=BENCHMARKS,
        lib=LIB,
    output:
        str(page_folder(PROFILE) / "{section}" / f"{{notebook}}--{slug(ACROSS)}.ipynb"),
    threads: 1
    params:
        profile=PROFILE,
    shell:
        "LAYERGEOM_THREADS={threads} OMP_NUM_THREADS={threads} "
        "{LAYERGEOM} page {params.profile:q} {wildcards.section}/{wildcards.notebook} {EVERY_MODEL}"
