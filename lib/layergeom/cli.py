"""The command line."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from layergeom.errors import LayergeomError, UsageError

if TYPE_CHECKING:
    import pandas as pd

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
    seed: Seed = 0,
    as_json: AsJson = False,
    save_arrays: SaveArrays = None,
) -> None:
    """Subspace PGA: are distances organised along the readout, by layer?

    Example: layergeom pga --model smollm2-135m --tokens 1000 --json
    """
    from layergeom import direct
    from layergeom.studies import PGAStudy, Session

    if save_arrays is not None:
        direct.check_array_file(save_arrays)
    settings = direct.pga_settings(model, text, tokens, samples, readout_dim, seed)
    study = PGAStudy(Session(settings), levels=(ccr,))
    report = direct.pga_report(study, ccr)
    if save_arrays is not None:
        direct.save_arrays(save_arrays, direct.pga_arrays(study, ccr))
    columns = ("layer", "rho_readout", "null_mean", "null_std", "z", "ci_low", "ci_high", "p")
    _print(report, columns, as_json, f"regime at CCR-{ccr}: {report['regime']}")


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
    bank: Annotated[int, typer.Option(min=1, help="Sequences of 128 tokens to fit on.")] = 32,
    metric: Annotated[
        Literal["euclidean", "cosine"], typer.Option(help="Distance between states.")
    ] = "euclidean",
    exclude_same_token: Annotated[
        bool, typer.Option("--exclude-same-token", help="Neighbours of other token ids only.")
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    save_arrays: SaveArrays = None,
) -> None:
    """Layer updates: tokenwise part, residual, and the residual's effect, by block.

    Example: layergeom updates --model smollm2-135m --map orthogonal --tokens 512 --json
    """
    from layergeom import direct
    from layergeom.studies import Session, UpdatesStudy

    if save_arrays is not None:
        direct.check_array_file(save_arrays)
    settings = direct.updates_settings(
        model, text, tokens, neighbours, bank, seed, metric, exclude_same_token
    )
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
    model: Model,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="name=value; may be given several times.")
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Folder for the page, its figure and its data.")
    ] = Path("_build/pages/direct"),
) -> None:
    """Run one notebook for one model and leave its page, figure and data.

    Example: layergeom run readout/pga_by_layer --model smollm2-135m -p seed=1
    """
    from layergeom.notebooks import read_notebook, run_notebook, typed_parameters
    from layergeom.paths import project_root
    from layergeom.progress import say

    root = project_root()
    book = read_notebook(root, notebook)
    parameters = typed_parameters(book, {**_pairs(parameter or []), "model": model})
    _prepare(book.studies, book.parameters, parameters)
    say(f"Running {book.name} for {model} ...")
    page = run_notebook(root, book, parameters, root / output)
    say(f"Page, figure and data: {page.parent}/{page.stem}.*")


@app.command()
def book(
    profile: Annotated[str, typer.Option(help="A file of profiles/, without .yml.")] = "offline",
    cores: Annotated[int, typer.Option(min=0, help="Cores to use; 0 for all.")] = 0,
) -> None:
    """Measure, run the notebooks and build the book of a profile, resuming what is there.

    Example: layergeom book --profile smoke
    """
    from layergeom.book import build
    from layergeom.geometry.threads import thread_count
    from layergeom.paths import project_root

    index = build(project_root(), profile, cores or thread_count())
    print(f"The book is at {index}")


@app.command(hidden=True)
def measure(profile: str, model: str, stamp: Path) -> None:
    """Compute the studies that a profile's notebooks read, for one model (a workflow step)."""
    from layergeom.files import write_text
    from layergeom.notebooks import read_notebook
    from layergeom.paths import project_root
    from layergeom.profiles import read_profile
    from layergeom.studies import Session
    from layergeom.studies.prepare import prepare

    root = project_root()
    chosen = read_profile(root, profile)
    names = sorted({s for n in chosen.notebooks for s in read_notebook(root, n).studies})
    session = Session(chosen.settings(model))
    prepare(session, names)
    write_text(stamp, f"{session.files.weights_hash}\n")


@app.command(hidden=True)
def page(profile: str, notebook: str, model: str) -> None:
    """Run one notebook of a profile for one model (a workflow step)."""
    from layergeom.book import page_folder
    from layergeom.notebooks import read_notebook, run_notebook, typed_parameters
    from layergeom.paths import project_root
    from layergeom.profiles import read_profile
    from layergeom.progress import say

    root = project_root()
    chosen = read_profile(root, profile)
    text = read_notebook(root, notebook)
    say(f"Running {notebook} for {model} ...")
    parameters = typed_parameters(text, chosen.parameters(model))
    run_notebook(root, text, parameters, root / page_folder(profile))


@app.command(hidden=True)
def bind(profile: str) -> None:
    """Stage the pages of a profile with the prose and build the HTML (a workflow step)."""
    from layergeom.book import bind as bind_book
    from layergeom.paths import project_root

    bind_book(project_root(), profile)


def _prepare(studies: tuple[str, ...], declared: Any, parameters: dict[str, Any]) -> None:
    """Compute what a notebook reads before it runs, so that progress shows on the terminal."""
    import ast

    from layergeom.studies import Session, Settings, named_sizes
    from layergeom.studies.prepare import prepare

    values = {name: ast.literal_eval(p.default) for name, p in declared.items()} | parameters
    settings = Settings(
        values["model"],
        values["corpus"],
        named_sizes(values["sizes"]),
        values["seed"],
        values.get("readout_dim") or None,
    )
    prepare(Session(settings), studies)


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
    except KeyboardInterrupt:
        print("Interrupted. What was complete is kept; run it again to go on.", file=sys.stderr)
        sys.exit(130)
