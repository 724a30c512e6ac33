"""The operators that a continuous query is made of, as a tree (paper 000, section 2.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Stream:
    """A leaf: the tuples of a stream, or of a table, in the query's window."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """The tuples of its input that meet a condition."""

    selectivity: Fraction  # output over input tuples, above 0, at most 1
    input: Operator


@dataclass(frozen=True, slots=True)
class Project:
    """Some columns of every tuple of its input."""

    input: Operator


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One result for all tuples of its input, or one for each group."""

    input: Operator


@dataclass(frozen=True, slots=True)
class Join:
    """The pairs of tuples that match."""

    selectivity: Fraction  # output over the input tuples of both sides
    left: Operator
    right: Operator


Operator = Stream | Select | Project | Aggregate | Join
