"""Small files that are replaced at once: a reader finds the old text or the new one, never a part."""

from __future__ import annotations

from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Writes beside the file, in one place: what a killed process left of a text is written over."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
