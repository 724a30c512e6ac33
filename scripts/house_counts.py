"""Counts what says how easy the code is to enter: folders, files, names, imports, kinds, lines, words.

    .venv/bin/python scripts/house_counts.py            # of this checkout
    .venv/bin/python scripts/house_counts.py OTHER      # of another one, such as an older commit

Two checkouts are compared by running the script on both. It imports nothing of Freshline.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
# The words of the four kinds, as folders and as fields.
KINDS = {
    "tables": re.compile(r"\b(tables|table_work|TableWork)\b"),
    "queries": re.compile(r"\b(queries|query_work|query_side|QueryWork|QuerySide)\b"),
    "requests": re.compile(r"\b(classes|requests|request_work|request_side|RequestWork|RequestSide)\b"),
    "steps": re.compile(r"\b(steps|outputs|node_work|node_side|NodeWork|NodeSide)\b"),
}
LINES_PER_KIND = 2  # a file lists a kind where so many lines of its code have its word


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def imports_of(path: Path) -> int:
    """How many modules of Freshline a module imports: what a reader has to know to read it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return sum((node.module or "").startswith("freshline") for node in froms)


def constructors(path: Path) -> Iterator[tuple[str, int]]:
    """The classes of a module, and how many parameters their constructors have besides self."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                    taken = each.args
                    yield node.name, len(taken.posonlyargs + taken.args + taken.kwonlyargs) - 1


def public_classes(folders: list[Path]) -> dict[str, list[Path]]:
    found = defaultdict(list)
    for folder in folders:
        for path in modules(folder):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(path)
    return found


def lists_the_kinds(path: Path) -> bool:
    """Whether the code of a file names at least three kinds, each in two lines or more."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines: dict[str, set[int]] = defaultdict(set)
    for node in ast.walk(tree):
        name = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "arg", None)
        if isinstance(node, ast.ImportFrom):
            name = (node.module or "").replace(".", " ")
        for kind, word in KINDS.items():
            if isinstance(name, str) and word.search(name):
                lines[kind].add(getattr(node, "lineno", 0))
    return sum(len(found) >= LINES_PER_KIND for found in lines.values()) >= 3


def rows(root: Path) -> Iterator[tuple[str, object]]:
    source = root / "src" / "freshline"
    lab = root / "src" / "freshline_lab"
    product = modules(source)
    yield "top-level folders", sum((folder / "__init__.py").exists() for folder in source.iterdir())
    per_folder = Counter(path.parent for path in product if path.name != "__init__.py")
    folder, most = per_folder.most_common(1)[0]
    yield "files in the largest folder", f"{most} ({folder.relative_to(root)})"
    twice = {name: paths for name, paths in public_classes([source, lab]).items() if len(paths) > 1}
    yield "public class names with two meanings", len(twice)
    runner = next(path for path in product if path.name == "runner.py")
    parameters = dict(constructors(runner))["Runner"]
    yield "imports and parameters of the runner", f"{imports_of(runner)} / {parameters}"
    widest = max(((count, path) for path in product if (count := imports_of(path))), default=(0, root))
    yield "most imports of a module", f"{widest[0]} ({widest[1].relative_to(root)})"
    most_taken = max((count, name) for path in product for name, count in constructors(path))
    yield "most parameters of a constructor", f"{most_taken[0]} ({most_taken[1]})"
    listing = [path.relative_to(source) for path in product if lists_the_kinds(path)]
    driving = [
        path for path in listing if path.parts[0] in ("live", "kernel", "simulation", "service", "spark")
    ]
    yield "files that list the kinds, in what runs", f"{len(driving)} ({', '.join(map(str, driving))})"
    yield "files that list the kinds, elsewhere", len(listing) - len(driving)
    yield "product lines", sum(len(path.read_text(encoding="utf-8").splitlines()) for path in product)
    yield "lab lines", sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules(lab))
    yield "words of architecture.md", len((root / "docs/architecture.md").read_text(encoding="utf-8").split())
    yield "lines of README.md", len((root / "README.md").read_text(encoding="utf-8").splitlines())


def main() -> None:
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE
    for what, number in rows(root):
        print(f"{what:42} {number}")


if __name__ == "__main__":
    main()
