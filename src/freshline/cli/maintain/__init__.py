"""The commands that look after stored tables: `calibrate`, `migrate`, `rebuild` and `verify`."""

from freshline.cli.maintain.calibrate import calibrate
from freshline.cli.maintain.migrate import migrate
from freshline.cli.maintain.rebuild import rebuild
from freshline.cli.maintain.verify import verify

__all__ = ["calibrate", "migrate", "rebuild", "verify"]
