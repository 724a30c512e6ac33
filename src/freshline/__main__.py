"""`python -m freshline`."""

from freshline.cli.main import main

main()
