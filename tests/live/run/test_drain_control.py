"""How a run that is to leave nothing out comes to its end."""

from freshline.live.status.status import WarehouseStatus
from patience import wait_until
from place import Place


def test_a_run_that_drains_loads_what_was_found_while_it_told_of_itself(tmp_path, spark, monkeypatch):
    place = Place(tmp_path, spark)
    write = WarehouseStatus.write

    def slow(self, *arguments) -> None:
        """The first time, for as long as it takes to find a file, and then nothing more."""
        write(self, *arguments)
        if self.starting is None and not place.said:
            place.land("clicks", 1)
            watch = place.runner.loop.loading.watch
            wait_until(lambda: bool(watch.waiting("clicks")))
            wait_until(watch.is_quiet)

    monkeypatch.setattr(WarehouseStatus, "write", slow)
    place.run()
    assert place.numbers("clicks") == [1]
