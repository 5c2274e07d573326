"""Run a notebook for a model or several: convert, check, execute, verify, publish."""

import glob
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jupytext
import papermill
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from layergeom.errors import LayergeomError, NotMeasurableError, UsageError, unknown
from layergeom.files import lock, make_folder, scratch_folder
from layergeom.models.sources import display_name
from layergeom.naming import ACROSS
from layergeom.pages import make_page, missing_page, page_label, verify_executed

Scope = Literal["per model", "across"]

_KERNEL = "python3"
#: The kernel's own warnings (it talks over loopback) are not the notebook's.
_KERNEL_ARGUMENTS = ["--log-level=CRITICAL"]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


_TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "list": _names,
}


@dataclass(frozen=True)
class Parameter:
    """A notebook's parameter, from its parameters cell.

    Attributes:
        name: its name.
        kind: str, int or float.
        default: its default as written.
        help: the comment beside it.
    """

    name: str
    kind: str
    default: str
    help: str


@dataclass(frozen=True)
class Notebook:
    """A text notebook.

    Attributes:
        name: section and name, such as ``readout/pga_by_layer``.
        path: the file.
        content: as a notebook, before execution.
        scope: whether it measures one model or compares several.
        order: its place among the notebooks of its section and scope, in the book.
        parameters: by name.
        studies: the studies whose results it reads.
    """

    name: str
    path: Path
    content: NotebookNode
    scope: Scope
    order: int
    parameters: Mapping[str, Parameter]
    studies: tuple[str, ...]

    @property
    def question(self) -> str:
        """The notebook's title."""
        return str(self.content.cells[0].source).partition("\n")[0].removeprefix("# ")

    @property
    def context(self) -> str:
        """The sentences under the title."""
        return str(self.content.cells[0].source).partition("\n")[2].strip()


def notebook_names(root: Path) -> list[str]:
    """Names of all notebooks of a checkout."""
    folder = root / "notebooks"
    return sorted(p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.py"))


def read_notebook(root: Path, name: str) -> Notebook:
    """A notebook by name.

    Raises:
        UsageError: no such notebook, or it has no single cell tagged ``parameters``.
    """
    name = name.removeprefix("notebooks/").removesuffix(".py")
    if name not in notebook_names(root):
        raise unknown("notebook", name, notebook_names(root))
    path = root / "notebooks" / f"{name}.py"
    content = jupytext.read(path)
    tagged = [c for c in content.cells if "parameters" in c.metadata.get("tags", [])]
    if len(tagged) != 1:
        raise UsageError(f"{path} has {len(tagged)} cells tagged 'parameters'; it needs one.")
    options = content.metadata.get("layergeom", {})
    return Notebook(
        name=name,
        path=path,
        content=content,
        scope=_scope(content, path),
        order=int(options.get("order", 0)),
        parameters=_parameters(content),
        studies=tuple(options.get("studies", ())),
    )


def notebook_scope(root: Path, name: str) -> Scope:
    """Whether a notebook measures one model or compares several, from its header alone."""
    path = root / "notebooks" / f"{name}.py"
    return _scope(jupytext.read(path), path)


def _scope(content: NotebookNode, path: Path) -> Scope:
    scope = content.metadata.get("layergeom", {}).get("scope", "per model")
    if scope == "per model" or scope == "across":
        return scope  # type: ignore[no-any-return]
    raise UsageError(f"{path}: its scope is {scope!r}; it must be 'per model' or 'across'.")


def _parameters(content: NotebookNode) -> dict[str, Parameter]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notebook.ipynb"
        jupytext.write(content, path)
        found = papermill.inspect_notebook(str(path))
    return {
        name: Parameter(name, row["inferred_type_name"], row["default"], row["help"])
        for name, row in found.items()
    }


def typed_parameters(notebook: Notebook, given: Mapping[str, str]) -> dict[str, Any]:
    """The given parameters in their declared types.

    Text stays text: a value is never guessed to be a number, so that a revision such as
    ``12e3456`` stays what it is.

    Raises:
        UsageError: an unknown parameter, with those there are; or a value of another type.
    """
    typed: dict[str, Any] = {}
    for name, value in given.items():
        parameter = notebook.parameters.get(name)
        if parameter is None:
            raise unknown(f"parameter of {notebook.name}", name, list(notebook.parameters))
        try:
            typed[name] = _TYPES[parameter.kind](value)
        except ValueError:
            raise UsageError(
                f"parameter {name} of {notebook.name} is {parameter.kind}, got {value!r} "
                f"(default {parameter.default})."
            ) from None
    return typed


def subject(models: Sequence[str], scope: Scope) -> str:
    """What a page is about, as its title and file names say it: a model, or all of them.

    Raises:
        UsageError: several models for a notebook that takes one, or a model twice.
    """
    if scope == "across":
        if twice := [model for model in models if models.count(model) > 1]:
            raise UsageError(f"{twice[0]} is named twice: a comparison takes different models.")
        return ACROSS
    if len(models) != 1:
        raise UsageError(f"this notebook takes one model, got {len(models)}: {', '.join(models)}.")
    return display_name(models[0])


def output_path(folder: Path, notebook: str, subject: str) -> Path:
    """Where a notebook's page for a subject goes."""
    return folder / Path(notebook).parent / f"{page_label(notebook, subject)}.ipynb"


@contextmanager
def one_kernel(root: Path) -> Iterator[AsyncKernelManager]:
    """A kernel for several notebooks in turn: what they import is imported once.

    Args:
        root: the checkout; the working folder of the notebooks.
    """
    kernel = AsyncKernelManager(kernel_name=_KERNEL)
    run_sync(kernel.start_kernel)(cwd=str(root), extra_arguments=_KERNEL_ARGUMENTS)
    try:
        yield kernel
    finally:
        run_sync(kernel.shutdown_kernel)(now=True)


async def _forget(kernel: AsyncKernelManager) -> None:
    """Clear what an earlier notebook left in a kernel's namespace."""
    client = kernel.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        await client.execute_interactive("%reset -f", store_history=False, timeout=60)
    finally:
        client.stop_channels()


def run_notebook(
    root: Path,
    notebook: Notebook,
    parameters: Mapping[str, Any],
    folder: Path,
    kernel: AsyncKernelManager | None = None,
) -> Path:
    """Execute a notebook and publish its page; nothing is left if it fails.

    Args:
        root: the checkout; the working folder of the notebook.
        notebook: what to run.
        parameters: typed parameters.
        folder: where pages go; figures and data go beside them.
        kernel: from ``one_kernel``, cleared first; a kernel of its own if left out.

    Returns:
        The page, an executed notebook.

    Raises:
        NotMeasurableError: what it shows cannot exist for this model or text.
        LayergeomError: the notebook failed, with its name and its error.
    """
    about = _subject_of(notebook, parameters)
    target = output_path(folder, notebook.name, about)
    with lock(target), scratch_folder(target) as temporary:
        source, executed = temporary / "source.ipynb", temporary / "executed.ipynb"
        beside = make_folder(temporary / "beside")
        jupytext.write(notebook.content, source)
        if kernel is not None:
            run_sync(_forget)(kernel)
        try:
            papermill.execute_notebook(
                str(source),
                str(executed),
                parameters={**parameters, "folder": str(beside)},
                kernel_name=_KERNEL,
                cwd=str(root),
                progress_bar=False,
                request_save_on_cell_execute=False,
                extra_arguments=_KERNEL_ARGUMENTS,
                km=kernel,
            )
        except DeadKernelError as error:
            raise LayergeomError(
                f"{notebook.name} failed for {about}: its kernel died. Where memory ran out, "
                "give it more, or measure a smaller model."
            ) from error
        except PapermillExecutionError as error:
            if error.ename == NotMeasurableError.__name__:
                raise NotMeasurableError(error.evalue) from error
            raise LayergeomError(
                f"{notebook.name} failed for {about}: {error.ename}: {error.evalue}\n"
                f"The failing cell begins: {error.source.strip().splitlines()[0]}"
            ) from error
        content = jupytext.read(executed)
        verify_executed(content, notebook.name)
        page = make_page(content, notebook.name, about, parameters, beside)
        jupytext.write(page, beside / target.name, fmt="ipynb")
        _publish(beside, target)
    return target


def publish_missing(
    notebook: Notebook, parameters: Mapping[str, Any], reason: str, folder: Path
) -> Path:
    """A page that says why there is no result, in the place of the one that would show it."""
    about = _subject_of(notebook, parameters)
    target = output_path(folder, notebook.name, about)
    with lock(target), scratch_folder(target) as temporary:
        page = missing_page(notebook.content, notebook.name, about, reason)
        jupytext.write(page, temporary / target.name, fmt="ipynb")
        _publish(temporary, target)
    return target


def _subject_of(notebook: Notebook, parameters: Mapping[str, Any]) -> str:
    models = parameters["models"] if notebook.scope == "across" else [parameters["model"]]
    return subject([str(model) for model in models], notebook.scope)


def _publish(made: Path, target: Path) -> None:
    """Put a page and its files in place of earlier ones, the page last."""
    for old in target.parent.glob(f"{glob.escape(target.stem)}.*"):
        if not (made / old.name).exists():
            old.unlink()
    for path in sorted(made.iterdir(), key=lambda p: p.suffix == ".ipynb"):
        os.replace(path, target.parent / path.name)
