"""A file's facts travel with it, and the kernel does not notice them."""

from hypothesis import given
from hypothesis import strategies as st

from freshline.kernel.tables.events import DataFile, FileArrived
from freshline.kernel.tables.intake import FileIntake
from freshline.live.tables.file_to_load import FileToLoad, files_to_load
from freshline.spark.loading.load import FileFacts
from freshline.storage.delta.files import ConsumedFile

files = st.lists(st.tuples(st.integers(1, 5), st.sampled_from(["a", "b", "c"]), st.integers(0, 9)))


@given(files)
def test_a_file_with_facts_is_to_the_kernel_as_one_without(found: list[tuple[int, str, int]]) -> None:
    plain, carrying = FileIntake(), FileIntake()
    for timestamp, name, records in found:
        facts = FileFacts(ConsumedFile(name, records, records, "x"), records, None, None)
        file, same = FileToLoad(timestamp, name, facts), DataFile(timestamp, name, records)
        assert (file, hash(file)) == (same, hash(same))
        assert FileArrived("feed", file).record() == FileArrived("feed", same).record()
        carrying.add(file)
        plain.add(same)
    assert carrying.pending == plain.pending
    assert sorted(file.facts.records for file in files_to_load(carrying.pending)) == sorted(
        records for _, _, records in found
    )
