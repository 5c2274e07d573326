"""Look over built pages for what must never be published."""

import re
from html.parser import HTMLParser
from pathlib import Path

#: Home folders, temporary folders and drive letters: paths of the machine that built the page.
_ABSOLUTE = re.compile(
    r"(?<![\w.:/-])/(?:home|root|Users|tmp|private|var/folders|work|workspace|mnt|github)/[\w.-]+"
)
_PATHS = re.compile(r"file://|[A-Z]:\\\\Users")


class _Page(HTMLParser):
    """Figures, images and visible text of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.images: list[dict[str, str | None]] = []
        self.classes: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.classes += (found.get("class") or "").split()
        self.ids.append(found.get("id") or "")
        if tag == "img":
            self.images.append(found)
        if tag in ("script", "style"):
            self._hidden += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._hidden -= 1

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text.append(data)


def scan_pages(html: Path) -> list[str]:
    """Problems of the built pages, one a line; none if they are fit to show.

    Looked for: error outputs, absolute paths, images that are missing or without alt text, and
    notebook pages that show neither a figure nor a table nor why there is none.
    """
    problems: list[str] = []
    for path in sorted(html.rglob("*.html")):
        name = path.relative_to(html).as_posix()
        if name.startswith("_static/"):
            continue
        source = path.read_text(encoding="utf-8")
        page = _Page()
        page.feed(source)
        problems += [f"{name}: {problem}" for problem in _problems(path, page)]
        if name.startswith("pages/") and "--" in path.stem and not _shows_something(page):
            problems.append(f"{name}: its figure or table is missing")
    for path in sorted((html / "_sources").rglob("*.ipynb")):
        for found in _ABSOLUTE.findall(path.read_text(encoding="utf-8"))[:1]:
            problems.append(f"_sources/{path.name}: absolute path {found}")
    return problems


def _shows_something(page: _Page) -> bool:
    """Whether a page has its figure, its table, or the notice that there is none."""
    pictures = any("_images/" in (image.get("src") or "") for image in page.images)
    return pictures or "missing" in page.classes or any(i.startswith("tab-") for i in page.ids)


def _problems(path: Path, page: _Page) -> list[str]:
    problems = []
    if {"traceback", "stderr"} & set(page.classes):
        problems.append("an error output")
    text = "".join(page.text)
    found = _ABSOLUTE.search(text) or _PATHS.search(text)
    if found:
        problems.append(f"absolute path {found.group(0)}")
    for image in page.images:
        source = image.get("src") or ""
        local = "://" not in source and not source.startswith("data:")
        if local and not (path.parent / source).is_file():
            problems.append(f"missing image {source}")
        alt = (image.get("alt") or "").strip()
        if not alt or alt.endswith((".svg", ".png")) or "_images/" in alt:
            problems.append(f"image {source} without alt text")
    return problems
