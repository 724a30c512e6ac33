"""Paths that stay where they belong."""

from __future__ import annotations

from pathlib import Path, PurePath

from freshline.base.errors import InputError


def confined(folder: Path, name: str) -> Path:
    """The path of `name` in the folder; a name that leads out of it, or nowhere, is refused."""
    parts = PurePath(name).parts
    if not parts or PurePath(name).is_absolute() or ".." in parts or "\0" in name:
        raise InputError(f"{name!r} leads out of {folder}", "Use a relative name without '..'")
    return folder.joinpath(*parts)
