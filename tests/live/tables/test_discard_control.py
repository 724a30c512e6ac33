"""The values that a table with `discard` is known to have, whatever is forgotten or fails."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cases import sampled
from freshline.landing.key_values import KeyValues
from freshline.storage.delta.last_values import DiscardLimit, FileOffer, LastValues
from plant import values


def load(known: LastValues, *files: KeyValues) -> None:
    with known.storing([FileOffer(each) for each in files], [False] * len(files)):
        pass


def changes(stored: KeyValues, found: KeyValues, error: float, factor: float = 1.0) -> bool:
    """Whether a file is loaded."""
    known = LastValues()
    load(known, stored)
    return known.offered(found, DiscardLimit(error, factor)).limit is None


@pytest.mark.parametrize(
    ("stored", "found", "error", "factor", "loaded"),
    [
        (100.0, 110.0, 0.1, 1.0, False),  # as much as may be
        (100.0, 110.1, 0.1, 1.0, True),
        (100.0, 90.0, 0.1, 1.0, False),
        (-100.0, -110.0, 0.1, 1.0, False),
        (100.0, -100.0, 1.0, 1.0, True),
        (100.0, 110.0, 0.1, 1.5, True),  # its reader needs it more precise
        (100.0, 110.0, 0.16, 1.5, False),
        (100.0, 100.0, 0.0, 3.0, False),  # no change is no error
        (0.0, 0.0, 0.0, 1.0, False),
        (0.0, 1e-300, 1.0, 1.0, True),  # no share of nothing
        (0.0, -0.0, 0.0, 1.0, False),
        (1e308, -1e308, 1.0, 1.0, True),
        (None, 1.0, 1.0, 1.0, True),
        (1.0, None, 1.0, 1.0, True),
        (5, 5, 0.0, 1.0, False),
        (2**62, 2**62 + 1, 0.0, 1.0, True),  # exactly
    ],
)
def test_a_file_is_discarded_by_its_weighted_error(stored, found, error, factor, loaded) -> None:
    assert changes(values(1, a=stored), values(2, a=found), error, factor) == loaded


def test_all_keys_must_change_little_and_be_known() -> None:
    stored = values(1, a=1.0, b=1.0)
    assert not changes(stored, values(2, a=1.0, b=1.0), 0.0)
    assert changes(stored, values(2, a=1.0, b=2.0), 0.5)
    assert changes(stored, values(2, a=1.0, c=1.0), 1.0)
    assert changes(stored, KeyValues(values(2, a=1.0).newest, odd=True), 1.0)
    assert changes(stored, KeyValues(), 1.0)
    assert changes(stored, values(0, a=1.0), 1.0)  # older than what is stored: it is not its successor


def test_a_file_is_compared_with_what_will_be_stored_when_its_turn_comes() -> None:
    known = LastValues()
    load(known, values(1, a=50.0))
    offers = [
        known.offered(values(at, a=v), DiscardLimit(0.1, 1.0)) for at, v in ((2, 100.0), (3, 51.0), (4, 52.0))
    ]
    assert [offer.limit is not None for offer in offers] == [False, False, True]
    assert known.discarded(offers) == [False, False, True]
    # The second is put aside, so that 52 would stand for 100.
    assert known.discarded([offers[0], offers[2]]) == [False, False]
    # An older one comes between.
    load(known, values(3, a=51.0), values(4, a=80.0))
    assert known.discarded([offers[2]]) == [False]


def test_what_is_known_is_bounded_and_forgets_the_oldest() -> None:
    known = LastValues(keys_max=2)
    load(known, values(1, a=1.0, b=1.0), values(2, a=1.0), values(3, c=1.0))
    assert len(known) == 2
    assert [
        known.offered(values(4, **{key: 1.0}), DiscardLimit(0.0, 1.0)).limit is None for key in "abc"
    ] == [
        False,
        True,
        False,
    ]
    with known.storing([FileOffer(None, until_us=6)], [False]):
        pass  # whatever it had
    assert len(known) == 0
    load(known, values(6, a=1.0), values(7, b=1.0))
    assert len(known) == 1  # an older one may not be the newest
    assert known.discarded([FileOffer(None), FileOffer(values(5, a=1.0), DiscardLimit(1.0, 1.0))]) == [
        False,
        False,
    ]


STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from([1.0, 1.05, 2.0]), min_size=1),
        st.integers(0, 12),  # when it was made
        st.sampled_from([0.0, 0.1, 1.0]),  # mwde
        st.sampled_from(["", "", "", "not told", "put aside"]),
        st.sampled_from(["", "", "before", "after"]),  # its commit, the job fails
    ),
    max_size=25,
)


# What is loaded together and older than what was forgotten is compared with nothing.
@example(
    [
        ({"a": 1.0}, 0, 0.0, "", ""),
        ({"a": 1.0, "b": 1.0}, 1, 0.0, "", ""),
        *[({"a": 1.0}, 0, 0.0, "", "")] * 2,
    ],
    1,
    2,
    2,
)
@sampled(300)
@given(STEPS, st.integers(1, 3), st.integers(1, 8), st.integers(1, 3))
def test_whatever_is_forgotten_or_fails_what_is_discarded_was_close_to_what_is_stored(
    steps, keys_max: int, waiting_max: int, together: int
) -> None:
    known = LastValues(keys_max, waiting_max)
    stored: dict[str, tuple[int, float]] = {}
    offers: list[tuple[dict[str, float], int, FileOffer]] = []
    for number, (of, at, mwde, how, fails) in enumerate(steps, start=1):
        offer = known.offered(None if how == "not told" else values(at, **of), DiscardLimit(mwde, 1.0), at)
        if how == "put aside":
            known.let_go(offer)
        else:
            offers.append((of, at, offer))
        if len(offers) < together and number < len(steps):
            continue
        told = [offer for _, _, offer in offers]
        flags = known.discarded(told)
        after = dict(stored)
        for (loaded, then, offer), is_discarded in zip(offers, flags, strict=True):
            for key, value in loaded.items():
                if is_discarded:
                    assert offer.limit is not None
                    assert after[key][0] <= then
                    assert abs(after[key][1] - value) <= offer.limit.error * after[key][1]
                elif key not in after or after[key][0] <= then:
                    after[key] = (then, value)
        with suppress(OSError), known.storing(told, flags):
            if fails:
                raise OSError
        if fails != "before":
            stored = after
            for offer in told:
                known.let_go(offer)  # as the file watch does, whatever the job said
            offers = []
        assert len(known) <= keys_max
    assert known.waiting == sum(len(offer.values.newest) for _, _, offer in offers if offer.values)
