"""A derived table that is not its query is found to differ, and how."""

import pytest
from deltalake import DeltaTable, write_deltalake

from freshline.base.errors import InputError
from freshline.live.maintain.verify import verify
from shop import Shop


def test_a_table_equals_its_query_until_another_writer_changes_it(tmp_path, spark):
    shop = Shop(tmp_path, spark)
    storage = tmp_path / "warehouse"
    with pytest.raises(InputError, match="nothing was ever loaded into revenue"):
        verify(spark, shop.warehouse, storage, "revenue")
    shop.orders(1, 3, 4)
    shop.orders(2, 10)
    shop.run()
    found = verify(spark, shop.warehouse, storage, "revenue")
    assert (found.is_equal, found.rows, found.version) == (True, 2, shop.stored("revenue").version())
    path = storage / "tables" / "revenue"
    row = DeltaTable(path).to_pyarrow_table().slice(0, 1)
    write_deltalake(path, row, mode="append")
    found = verify(spark, shop.warehouse, storage, "revenue")
    assert (found.missing, found.extra, found.rows) == (0, 1, 3)
    assert [line.partition(":")[0] for line in found.examples] == ["not of the query"]
    DeltaTable(path).delete()
    found = verify(spark, shop.warehouse, storage, "revenue")
    assert (found.missing, found.extra, found.rows) == (2, 0, 0)
    assert [line.partition(":")[0] for line in found.examples] == ["missing"] * 2
