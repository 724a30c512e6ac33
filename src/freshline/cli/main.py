"""The `freshline` command."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from freshline import __version__
from freshline.cli.analyze import analyze
from freshline.cli.calibrate import calibrate
from freshline.cli.demo import demo
from freshline.cli.experiment import experiment
from freshline.cli.init import init
from freshline.cli.plan import plan
from freshline.cli.quarantine import quarantine
from freshline.cli.rebuild import rebuild
from freshline.cli.run import replay, run
from freshline.cli.simulate import simulate
from freshline.cli.sql import sql
from freshline.cli.status import status
from freshline.definitions.errors import InputError

app = typer.Typer(
    name="freshline",
    help="A real-time stream warehouse: declare how stale tables may be, and see it proven before it runs.",
    epilog="Exit codes: 0 every target holds, 1 some target is not proven or was exceeded, 2 bad input.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (init, plan, simulate, run, status, sql, replay, rebuild, calibrate, demo, analyze):
    app.command()(command)
app.add_typer(quarantine, name="quarantine")
app.add_typer(experiment, name="experiment")


@app.command()
def schema() -> None:
    """Print the JSON schema of freshline.yml, for editors.

    Example: freshline schema > freshline.schema.json
    """
    from freshline.definitions.file import json_schema

    print(json.dumps(json_schema(), indent=2))


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    if version:
        print(f"freshline {__version__}")
        raise typer.Exit


def main() -> None:
    """Runs the command line. Bad input becomes one sentence on standard error and exit code 2."""
    try:
        app()
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output has gone, as with `| head`: nothing is left to say.
        sys.stderr.close()
        sys.exit(1)
