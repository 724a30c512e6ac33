"""`freshline init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freshline.base.errors import InputError
from freshline.cli.project_template import FILES
from freshline.cli.shared import JsonOption, print_json


def init(
    folder: Annotated[Path, typer.Argument(help="Where the project goes; made if missing.", metavar="DIR")],
    as_json: JsonOption = False,
) -> None:
    """Write a small warehouse that runs, to start from.

    Example: freshline init network
    """
    for name in FILES:
        if (folder / name).exists():
            raise InputError(f"there is a {folder / name} already", "Name another folder, or remove the file")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        what = f"cannot write into {folder}: {error.strerror}"
        raise InputError(what, "Name a folder that can be written") from error
    if as_json:
        print_json({"folder": str(folder), "files": list(FILES)})
        return
    for name in FILES:
        print(f"Wrote {folder / name}")
    print(f"Next: cd {folder}, and see README.md, or `freshline plan`.")
