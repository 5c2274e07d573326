"""The command line."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from layergeom.errors import LayergeomError, UsageError
from layergeom.models.devices import Device, Dtype, check_device

if TYPE_CHECKING:
    import pandas as pd

#: Exit status of a command that Ctrl-C ended, as shells have it.
INTERRUPTED = 130

app = typer.Typer(
    help=(
        "The geometry of language models' layers: Subspace PGA, layer updates, and the book "
        "that reproduces both papers."
    ),
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Model = Annotated[
    str, typer.Option("--model", help="Catalogue name, hub id (owner/name) or local folder.")
]
Text = Annotated[
    str, typer.Option("--text", help="Path of a text file; the embedded corpus if left out.")
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of every random choice.")
]
On = Annotated[
    Device,
    typer.Option("--device", help="Where the model runs; auto: the GPU where there is one."),
]
Arithmetic = Annotated[
    Dtype, typer.Option("--dtype", help="Arithmetic of the model's forward pass.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
SaveArrays = Annotated[
    Path | None,
    typer.Option("--save-arrays", help="Write the arrays behind the figures to this .npz file."),
]


@app.command()
def pga(
    model: Model,
    text: Text = "wikipedia-sample",
    tokens: Annotated[int, typer.Option(min=3, help="Tokens a sample.")] = 600,
    samples: Annotated[int, typer.Option(min=1, help="Disjoint samples of tokens.")] = 1,
    readout_dim: Annotated[
        int | None, typer.Option(min=1, help="Readout dimension k; 100 or d/4 if left out.")
    ] = None,
    ccr: Annotated[int, typer.Option(min=0, help="Principal components removed.")] = 1,
    memory: Annotated[
        float,
        typer.Option(
            min=0.001,
            max=1e6,
            help="GiB for ranking distances; beyond, a sample of the pairs is ranked.",
        ),
    ] = 8.0,
    seed: Seed = 0,
    device: On = "auto",
    dtype: Arithmetic = "float32",
    as_json: AsJson = False,
    save_arrays: SaveArrays = None,
) -> None:
    """Subspace PGA: are distances organised along the readout, by layer?

    Example: layergeom pga --model smollm2-135m --tokens 1000 --json
    """
    from layergeom import direct
    from layergeom.studies import PGAStudy, Session

    check_device(device)
    if save_arrays is not None:
        direct.check_array_file(save_arrays)
    settings = direct.pga_settings(model, text, tokens, samples, readout_dim, seed, memory)
    settings = replace(settings, device=device, dtype=dtype)
    study = PGAStudy(Session(settings), levels=(ccr,))
    report = direct.pga_report(study, ccr)
    if save_arrays is not None:
        direct.save_arrays(save_arrays, direct.pga_arrays(study, ccr))
    columns = ("layer", "rho_readout", "null_mean", "null_std", "z", "ci_low", "ci_high", "p")
    _print(
        report,
        columns,
        as_json,
        f"regime at CCR-{ccr}: {report['regime'] or 'undefined'}\n"
        f"interval of z: {report['interval']}",
    )


@app.command()
def updates(
    model: Model,
    map_: Annotated[
        str,
        typer.Option(
            "--map",
            help="diagonal, orthogonal, low_rank, identity_low_rank or mlp; or a baseline: "
            "identity, mean_update or global_linear.",
        ),
    ] = "orthogonal",
    text: Text = "wikipedia-sample",
    tokens: Annotated[int, typer.Option(min=8, help="Query tokens.")] = 1024,
    neighbours: Annotated[int, typer.Option(min=1, help="Neighbours of a local fit, K.")] = 64,
    bank: Annotated[
        int, typer.Option(min=1, help="Sequences to fit on, of 128 tokens or the model's context.")
    ] = 32,
    metric: Annotated[
        Literal["euclidean", "cosine"], typer.Option(help="Distance between states.")
    ] = "euclidean",
    exclude_same_token: Annotated[
        bool, typer.Option("--exclude-same-token", help="Neighbours of other token ids only.")
    ] = False,
    seed: Seed = 0,
    device: On = "auto",
    dtype: Arithmetic = "float32",
    as_json: AsJson = False,
    save_arrays: SaveArrays = None,
) -> None:
    """Layer updates: tokenwise part, residual, and the residual's effect, by block.

    Example: layergeom updates --model smollm2-135m --map orthogonal --tokens 512 --json
    """
    from layergeom import direct
    from layergeom.studies import Session, UpdatesStudy, check_class

    check_class(map_)
    check_device(device)
    if save_arrays is not None:
        direct.check_array_file(save_arrays)
    settings = direct.updates_settings(
        model, text, tokens, neighbours, bank, seed, metric, exclude_same_token
    )
    settings = replace(settings, device=device, dtype=dtype)
    study = UpdatesStudy(Session(settings), classes=(map_,))
    report = direct.updates_report(study)
    if save_arrays is not None:
        direct.save_arrays(save_arrays, direct.updates_arrays(study.fits))
    columns = (
        *("layer", "rel_err_state", "cos_full_tokenwise", "cos_full_residual"),
        *("angle_tokenwise_residual", "kl_median", "spearman_relerr_kl"),
    )
    _print(report, columns, as_json, f"medians over {tokens} tokens, map {map_}")


@app.command()
def run(
    notebook: Annotated[str, typer.Argument(help="Such as readout/pga_by_layer.")],
    models: Annotated[
        list[str],
        typer.Option(
            "--model",
            help="Catalogue name, hub id or local folder; several times for a notebook that "
            "compares models.",
        ),
    ],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="name=value; may be given several times.")
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Folder for the page, its figure and its data.")
    ] = Path("_build/pages/direct"),
) -> None:
    """Run one notebook and leave its page, figure and data.

    Example: layergeom run readout/pga_by_layer --model smollm2-135m -p seed=1
    """
    from layergeom.files import check_writable, make_folder
    from layergeom.notebooks import read_notebook, run_notebook, subject, typed_parameters
    from layergeom.paths import project_root
    from layergeom.progress import say

    root = project_root()
    text = read_notebook(root, notebook)
    about = subject(models, text.scope)
    given = _pairs(parameter or [])
    for name, option in (("model", "--model"), ("models", "--model"), ("folder", "--output")):
        if name in given:
            raise UsageError(f"the parameter {name} is given by {option}, not by -p.")
    chosen = {"models": ",".join(models)} if text.scope == "across" else {"model": models[0]}
    parameters = typed_parameters(text, {**given, **chosen})
    check_writable(make_folder((root / output / text.name).parent))  # before anything is computed
    _prepare(text.studies, text.parameters, parameters, models)
    say(f"Running {text.name} for {about} ...")
    page = run_notebook(root, text, parameters, root / output)
    say(f"Page, figure and data: {page.parent}/{page.stem}.*")


@app.command()
def book(
    profile: Annotated[str, typer.Option(help="A file of profiles/, without .yml.")] = "offline",
    cores: Annotated[int, typer.Option(min=0, help="Cores to use; 0 for all.")] = 0,
    accept_gemma_terms: Annotated[
        bool,
        typer.Option(
            "--accept-gemma-terms",
            help="You have read and accept https://ai.google.dev/gemma/terms.",
        ),
    ] = False,
) -> None:
    """Measure, run the notebooks and build the book of a profile, resuming what is there.

    Example: layergeom book --profile smoke
    """
    from layergeom.book import build
    from layergeom.geometry.threads import thread_count
    from layergeom.paths import project_root
    from layergeom.profiles import read_profile

    root = project_root()
    chosen = read_profile(root, profile)
    check_device(chosen.device)
    chosen.accept(*(["gemma"] if accept_gemma_terms else []))
    index = build(root, profile, cores or thread_count())
    print(f"The book is at {index}")


@app.command()
def claims(
    profile: Annotated[str, typer.Option(help="A file of profiles/, without .yml.")] = "offline",
    as_json: AsJson = False,
) -> None:
    """The ledger: what becomes of every claim of both papers on a profile's models.

    Stored results are read, and what is missing is measured first.

    Example: layergeom claims --profile smoke --json
    """
    from layergeom import claims as ledger
    from layergeom.direct import plain
    from layergeom.paths import project_root
    from layergeom.profiles import read_profile
    from layergeom.studies import Session

    chosen = read_profile(project_root(), profile)
    chosen.accept()
    results = ledger.gather_all([Session(chosen.settings(m)) for m in chosen.every_model])
    entries = ledger.ledger(results)
    if as_json:
        report = {"profile": profile, **ledger.as_json(entries, results.models)}
        print(json.dumps(plain(report), indent=1, allow_nan=False, ensure_ascii=False))
        return
    print(ledger.as_text(entries))
    print("\n".join(filter(None, ["", ledger.summary(entries), ledger.outsiders(results.models)])))


@app.command(hidden=True)
def measure(
    profile: str,
    stamp: Path,
    models: list[str],
    across: Annotated[bool, typer.Option("--across", help="What compares the models.")] = False,
) -> None:
    """Compute the studies that a profile's notebooks read (a workflow step)."""
    from layergeom.errors import NotMeasurableError
    from layergeom.files import write_text
    from layergeom.notebooks import read_notebook
    from layergeom.paths import project_root
    from layergeom.profiles import read_profile
    from layergeom.progress import say
    from layergeom.studies import Session
    from layergeom.studies.prepare import prepare, prepare_across

    root = project_root()
    chosen = read_profile(root, profile)
    chosen.accept()
    scope = "across" if across else "per model"
    notebooks = [read_notebook(root, name) for name in chosen.notebooks]
    names = sorted({s for n in notebooks if n.scope == scope for s in n.studies})
    sessions = [Session(chosen.settings(model)) for model in models]
    for name in names:
        try:
            prepare_across(sessions, [name]) if across else prepare(sessions[0], [name])
        except NotMeasurableError as error:
            # Its page will say so; the other pages do not depend on it.
            say(f"Not measured ({name}, {', '.join(models)}): {error}")
    write_text(stamp, "".join(f"{session.files.weights_hash}\n" for session in sessions))


@app.command(hidden=True)
def page(profile: str, notebook: str, models: list[str]) -> None:
    """Run one notebook of a profile for each model, or for all at once (a workflow step)."""
    from layergeom.book import page_folder
    from layergeom.errors import NotMeasurableError
    from layergeom.notebooks import (
        one_kernel,
        publish_missing,
        read_notebook,
        run_notebook,
        subject,
        typed_parameters,
    )
    from layergeom.paths import project_root
    from layergeom.profiles import read_profile
    from layergeom.progress import say

    root = project_root()
    chosen = read_profile(root, profile)
    chosen.accept()
    text = read_notebook(root, notebook)
    folder = root / page_folder(profile)
    with one_kernel(root) as kernel:
        for group in [models] if text.scope == "across" else [[model] for model in models]:
            about = subject(group, text.scope)
            say(f"Running {notebook} for {about} ...")
            given = chosen.parameters(group, text.scope)
            if "notebooks" in text.parameters:
                given["notebooks"] = ",".join(chosen.notebooks)  # to link to their pages
            parameters = typed_parameters(text, given)
            try:
                run_notebook(root, text, parameters, folder, kernel)
            except NotMeasurableError as error:
                say(f"{notebook} is missing for {about}: {error}")
                publish_missing(text, parameters, str(error), folder)


@app.command(hidden=True)
def bind(profile: str) -> None:
    """Stage the pages of a profile with the prose and build the HTML (a workflow step)."""
    from layergeom.book import bind as bind_book
    from layergeom.paths import project_root

    bind_book(project_root(), profile)


def _prepare(
    studies: tuple[str, ...], declared: Any, parameters: dict[str, Any], models: list[str]
) -> None:
    """Compute what a notebook reads before it runs, so that progress shows on the terminal."""
    import ast

    from layergeom.studies import open_session
    from layergeom.studies.prepare import prepare, prepare_across

    values = {name: ast.literal_eval(p.default) for name, p in declared.items()} | parameters
    names = ("corpus", "sizes", "seed", "dtype", "readout_dim")
    chosen = {name: values[name] for name in names if name in values}
    sessions = [open_session(model, **chosen) for model in models]
    if "models" in values:
        prepare_across(sessions, studies)
    else:
        prepare(sessions[0], studies)


def _pairs(given: list[str]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"-p takes name=value, got {text!r}.")
        pairs[name] = value
    return pairs


def _print(report: dict[str, Any], columns: tuple[str, ...], as_json: bool, note: str) -> None:
    from layergeom.direct import layer_table, plain

    if as_json:
        print(json.dumps(plain(report), indent=1, allow_nan=False))
        return
    print(f"{report['model']}: {note}")
    print(_text_table(layer_table(report, columns)))


def _text_table(table: "pd.DataFrame") -> str:
    return table.to_string(index=False, float_format=lambda value: f"{value:.3f}")


def main() -> None:
    """Run the command line; a person's mistake ends in a message, never in a traceback."""
    if not sys.stderr.isatty():
        # Libraries' progress bars would print every frame on a line of its own.
        os.environ.setdefault("TQDM_DISABLE", "1")
    try:
        app()
    except LayergeomError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
    except ValueError as error:
        from layergeom.geometry.errors import GeometryError

        if not isinstance(error, GeometryError):
            raise
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(UsageError.exit_status)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            print("Interrupted. What was complete is kept; run it again to go on.", file=sys.stderr)
        raise
