"""`python -m freshline`."""

from freshline.cli.main import run

run()
