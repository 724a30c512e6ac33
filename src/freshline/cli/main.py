"""The `freshline` command."""

from __future__ import annotations

import io
import json
import os
import sys
import traceback
from typing import Annotated

import typer

from freshline import __version__
from freshline.base.disk import full_disk
from freshline.base.errors import InputError
from freshline.base.printable import printable
from freshline.base.signals import TerminationRequested, ignore, listen
from freshline.cli.analyze import analyze
from freshline.cli.apply import apply
from freshline.cli.demo import demo
from freshline.cli.experiment import experiment
from freshline.cli.init import init
from freshline.cli.maintain import calibrate, migrate, rebuild, verify
from freshline.cli.place import place
from freshline.cli.plan import plan
from freshline.cli.quarantine import quarantine
from freshline.cli.query import query
from freshline.cli.results import results
from freshline.cli.run import replay, run
from freshline.cli.shed import shed
from freshline.cli.simulate import simulate
from freshline.cli.sql import sql
from freshline.cli.status import status

# From sysexits.h, so that they differ from the results of commands.
_EXIT_BUG = 70
_EXIT_IO = 74

app = typer.Typer(
    name="freshline",
    help="A real-time stream warehouse: declare how stale tables may be, and see it proven before it runs.",
    epilog="Exit codes: 0 every target holds, 1 some target is not proven or was exceeded, 2 bad input, "
    f"4 a run ended with data left to load, {_EXIT_BUG} a bug of Freshline, {_EXIT_IO} the system could not "
    "read or write, 130 interrupted and 143 terminated before there was anything to sum up.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (
    init,
    plan,
    simulate,
    run,
    status,
    apply,
    results,
    query,
    sql,
    replay,
    rebuild,
    verify,
    migrate,
    calibrate,
    demo,
    analyze,
    shed,
    place,
):
    app.command()(command)
app.add_typer(quarantine, name="quarantine")
app.add_typer(experiment, name="experiment")


@app.command()
def schema(
    as_json: Annotated[
        bool, typer.Option("--json", help="Accepted as by every command; the schema is always JSON.")
    ] = True,
) -> None:
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
    listen()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Escape a name that the terminal's encoding lacks, instead of failing.
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here a failure can still be reported
    except TerminationRequested:
        ignore()
        raise
    except InputError as error:
        print(printable(str(error), but="\n"), file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output has gone, as with `| head`, so there is nothing to report.
        _drop_output()
        sys.exit(1)
    except OSError as error:
        _drop_output()
        _explain(f"The system refused: {full_disk(error) or error}.")
        sys.exit(_EXIT_IO)
    except Exception as error:
        full = full_disk(error)  # Spark, Delta and SQLite report a full disk in their own ways
        if full is not None:
            _explain(f"The system refused: {full}.")
            sys.exit(_EXIT_IO)
        reason = " ".join(str(error).split())
        _explain(f"This is a bug of Freshline, please report it: {type(error).__name__}: {reason}")
        sys.exit(_EXIT_BUG)


def _explain(sentence: str) -> None:
    """Reports the current exception: in one line, or with its traceback for debugging."""
    if os.environ.get("FRESHLINE_DEBUG") == "1":
        traceback.print_exc()
    print(printable(sentence), file=sys.stderr)


def _drop_output() -> None:
    """Drops what could not be written; otherwise Python would try again at exit and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
