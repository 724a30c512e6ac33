"""The example of a deadline across nodes is planned as README says."""

import json
from pathlib import Path

from typer.testing import CliRunner

from freshline.cli.main import app


def test_the_output_of_the_example_is_proven_to_be_in_time():
    example = Path(__file__).parents[3] / "examples/alerts"
    result = CliRunner().invoke(app, ["plan", "-p", str(example), "--json"])
    assert result.exit_code == 0, result.output
    outputs = json.loads(result.stdout)["outputs"]
    assert [(output["name"], output["deadline"], output["holds"]) for output in outputs] == [
        ("alerts", 10, True)
    ]
