"""One name for one thing: a public class name stands in one module."""

import ast
from collections import defaultdict
from pathlib import Path

import freshline
import freshline_lab

PACKAGES = [Path(package.__file__).parent for package in (freshline, freshline_lab)]
# Names that two modules may have, each with its reason.
ALLOWED: dict[str, str] = {}


def public_classes(code: str) -> list[str]:
    """The classes of a module that others may use."""
    classes = [node for node in ast.parse(code).body if isinstance(node, ast.ClassDef)]
    return [node.name for node in classes if not node.name.startswith("_")]


def test_a_public_class_name_has_one_meaning() -> None:
    found = defaultdict(list)
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            for name in public_classes(path.read_text(encoding="utf-8")):
                found[name].append(str(path.relative_to(package.parent)))
    twice = {name: places for name, places in found.items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in ALLOWED} == {}
    assert ALLOWED.keys() <= twice.keys(), "a name that is no longer there twice"


def test_private_and_nested_classes_do_not_count() -> None:
    code = "class One:\n    class Inner: ...\nclass _Two: ...\ndef f():\n    class Three: ..."
    assert public_classes(code) == ["One"]
