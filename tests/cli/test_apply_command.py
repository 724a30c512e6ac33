"""What `freshline apply` tells people."""

from freshline.cli.apply import sentences


def test_each_query_that_comes_goes_or_is_refused_has_its_sentence() -> None:
    refused = {"name": "huge", "reason": "even at the least costs its deadline would be missed"}
    answer = {
        "admitted": ["counts"],
        "refused": [refused | {"period_least": 12.5}, refused | {"name": "vast", "period_least": None}],
        "removed": ["dear"],
        "unchanged": ["sums"],
    }
    assert sentences(answer) == [
        "counts is admitted.",
        "huge is refused: even at the least costs its deadline would be missed. A stride of "
        "12.5s, with a deadline as long, would do.",
        "vast is refused: even at the least costs its deadline would be missed. "
        "No stride of up to 1 hour would do.",
        "dear ends after its iteration.",
    ]


def test_where_nothing_changes_that_is_said() -> None:
    nothing = {"admitted": [], "refused": [], "removed": [], "unchanged": ["sums"]}
    assert sentences(nothing) == ["No query has changed."]
