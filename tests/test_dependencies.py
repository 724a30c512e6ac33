"""Every package that the code imports is declared: another package may stop bringing it along."""

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from re import match

ROOT = Path(__file__).parents[1]
OWN = {"freshline", "freshline_lab"}


def imported() -> dict[str, str]:
    """The top-level modules that the code imports, each with one file that does."""
    found: dict[str, str] = {}
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.append(node.module)
            found |= {name.partition(".")[0]: str(file.relative_to(ROOT)) for name in names}
    return found


def test_every_imported_package_is_declared() -> None:
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    declared = {match(r"[\w-]+", line)[0].lower() for line in lines}
    packages = packages_distributions()
    missing = {
        module: file
        for module, file in imported().items()
        if module not in OWN | sys.stdlib_module_names
        and not declared & {name.lower().replace("_", "-") for name in packages.get(module, [module])}
    }
    assert not missing
