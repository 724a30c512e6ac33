"""How long tests wait for what must happen: long enough for a machine that has fifteen other things to do."""

from freshline.definitions.duration import SECOND

PATIENCE_S = 600
PATIENCE_US = PATIENCE_S * SECOND
PATIENCE = f"{PATIENCE_S}s"  # for `--for`
