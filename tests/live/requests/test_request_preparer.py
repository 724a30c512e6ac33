"""What may be asked for: every table that the file defines, wherever it is written."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from freshline.definitions.load import load
from freshline.live.nodes.node_join import make_placement
from freshline.live.requests.request_costs import RequestCosts
from freshline.live.requests.request_preparer import RequestPreparer
from freshline.live.tables.node_share import part_of
from freshline.sql.request_sql import RequestRefused, read_request
from freshline.storage.control.history import History
from freshline_lab.campaigns.kills.node_kills import write_node_project


def test_steps_and_tables_of_other_nodes_can_be_asked_too(tmp_path: Path) -> None:
    warehouse = load(write_node_project(tmp_path))
    part = part_of(warehouse, "edge", make_placement(warehouse, None).nodes)
    assert warehouse.stored.keys() > part.local.tables.keys()
    columns = StructType().add("ts", "timestamp").add("v", "double")
    tables = SimpleNamespace(readable=dict.fromkeys(warehouse.stored, SimpleNamespace(files=())))
    opened: Any = SimpleNamespace(
        part=part, tables=tables, schemas=dict.fromkeys(warehouse.stored, columns), session=None
    )
    sessions: Any = None
    with History(tmp_path / "history.sqlite") as history:
        preparing = RequestPreparer(opened, sessions, RequestCosts(history))
        for name in warehouse.stored:
            request = read_request(f"SELECT sum(v) AS v FROM {name}", preparing._readable)
            assert preparing._cost(request)[1].us(1) > 0
        with pytest.raises(RequestRefused, match="there is no table `nowhere`"):
            read_request("SELECT sum(v) AS v FROM nowhere", preparing._readable)
