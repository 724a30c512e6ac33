"""`freshline experiment`: the papers' evaluations are in `freshline_lab`, which it imports on demand."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup


def _lab() -> TyperGroup:
    from freshline_lab.command import experiment as commands

    group = typer.main.get_command(commands)
    assert isinstance(group, TyperGroup)
    return group


class LabCommands(TyperGroup):
    """The commands of `freshline_lab`."""

    def list_commands(self, ctx: Any) -> list[str]:
        return _lab().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _lab().get_command(ctx, cmd_name)


experiment = typer.Typer(
    cls=LabCommands,
    help="Run a paper's evaluation again and compare.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@experiment.callback()
def _group() -> None:
    """Run a paper's evaluation again and compare."""
