"""Small files that are replaced atomically: a reader finds the old text or the new one, never a part."""

from __future__ import annotations

from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Writes a draft with a fixed name first, so the next write replaces the leftover of a killed process."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
