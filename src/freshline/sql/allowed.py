"""What the SQL of a request may be made of: words that may stand before a bracket, and kinds of expressions.

Any client may send a request, and it runs beside updates. So this refuses whatever it does not know to be
plain: functions that read files, call Java or reveal the machine; that make rows, or texts and arrays of any
length; regular expressions, some of which never end; and aggregates that keep all their values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from freshline.base.errors import InputError
from freshline.base.names import cut


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_AGGREGATES: Final = _words(
    """any any_value approx_count_distinct approx_percentile avg bit_and bit_or bit_xor bool_and bool_or
    corr count count_if covar_pop covar_samp every first first_value kurtosis last last_value max
    max_by mean min min_by percentile_approx regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope skewness some std stddev stddev_pop stddev_samp sum try_avg try_sum var_pop var_samp
    variance"""
)
_WINDOWS: Final = _words(
    "cume_dist dense_rank grouping grouping_id lag lead nth_value ntile percent_rank rank row_number"
)
_NUMBERS: Final = _words(
    """abs acos acosh asin asinh atan atan2 atanh bin bit_count bround cbrt ceil ceiling cos cosh cot csc
    degrees e exp expm1 floor greatest hypot isnan least ln log log10 log1p log2 mod nanvl negative
    pi pmod positive pow power radians rint round sec shiftleft shiftright shiftrightunsigned sign
    signum sin sinh sqrt tan tanh try_add try_divide try_multiply try_subtract width_bucket"""
)
_CHOICES: Final = _words(
    """case cast coalesce equal_null if ifnull isnotnull isnull nullif nullifzero nvl nvl2 try_cast typeof
    zeroifnull"""
)
_TEXTS: Final = _words(
    """ascii bit_length btrim char_length character_length chr concat concat_ws contains crc32 endswith
    hash initcap instr lcase left len length locate lower ltrim md5 octet_length position reverse
    right rtrim sha sha1 sha2 soundex startswith substr substring substring_index translate trim
    ucase upper xxhash64"""
)
_TIMES: Final = _words(
    """add_months convert_timezone curdate current_date current_timestamp date date_add date_diff
    date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day
    dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day
    make_date make_timestamp minute month monthname months_between next_day now quarter second
    timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date
    to_timestamp to_unix_timestamp to_utc_timestamp trunc try_to_timestamp unix_date unix_micros
    unix_millis unix_seconds unix_timestamp week weekday weekofyear window window_time year"""
)
_NESTED: Final = _words("array_contains array_max array_min cardinality element_at get_json_object size")
_TYPES: Final = _words(
    """bigint binary boolean char date decimal double float int integer long numeric smallint string
    timestamp timestamp_ltz timestamp_ntz tinyint varchar"""
)
# Keywords, not functions: a bracket may follow them too.
_KEYWORDS: Final = _words(
    """all and as between by cube distinct else except exists filter from having ilike in intersect
    interval is join like limit minus not offset on or over rollup select sets then union using when
    where with"""
)
_BEFORE_BRACKETS: Final = (
    _AGGREGATES | _WINDOWS | _NUMBERS | _CHOICES | _TEXTS | _TIMES | _NESTED | _TYPES | _KEYWORDS
)
# Functions that Spark also accepts without brackets, and that reveal the machine.
_TELLING: Final = _words("current_catalog current_database current_schema current_user session_user user")
_REMEDIES: Final = {
    **dict.fromkeys(("median", "percentile"), "Use approx_percentile(x, 0.5)"),
    **dict.fromkeys(("rlike", "regexp", "regexp_like", "split"), "Use LIKE, instr, startswith or endswith"),
}
# The limit for one LIKE pattern: '%a%b%' is within it.
_WILDCARDS_MAX: Final = 3
_REMEDY: Final = "Use plain functions of a row's values, and aggregates such as count, sum and avg"

_PLAIN: Final = (
    exp.AggFunc, exp.Alias, exp.All, exp.Anonymous, exp.Any, exp.AtTimeZone, exp.Between, exp.Binary,
    exp.Boolean, exp.Bracket, exp.CTE, exp.Case, exp.Cast, exp.Column, exp.Cube, exp.DataType,
    exp.DataTypeParam, exp.Distinct, exp.Dot, exp.Exists, exp.Filter, exp.From, exp.Func, exp.Group,
    exp.GroupingSets, exp.Having, exp.Identifier, exp.IgnoreNulls, exp.In, exp.Interval,
    exp.IntervalSpan, exp.Join, exp.Limit, exp.Literal, exp.Null, exp.Offset, exp.Order, exp.Ordered,
    exp.Paren, exp.Qualify, exp.RespectNulls, exp.Rollup, exp.Select, exp.SetOperation, exp.Star,
    exp.Subquery, exp.Table, exp.TableAlias, exp.Tuple, exp.Unary, exp.Var, exp.Where, exp.Window,
    exp.WindowSpec, exp.With,
)  # fmt: skip
# Subclasses of the kinds above that are not plain expressions.
_NOT_PLAIN: Final = (
    exp.UDTF, exp.Lambda, exp.Kwarg, exp.PropertyEQ, exp.RegexpLike, exp.RegexpILike, exp.Sort, exp.Cluster,
    exp.Distribute,
)  # fmt: skip


def check_words(tokens: Sequence[Token], columns: Collection[str]) -> None:
    """Raises InputError for an unknown word before a bracket, however sqlglot parses it."""
    before: Token | None = None
    for token, following in pairwise([*tokens, *tokens[-1:]]):
        word = token.text.lower().rpartition(" ")[2]
        is_quoted = token.token_type is TokenType.IDENTIFIER
        is_word = is_quoted or word[:1].isalpha() or word[:1] == "_"
        if token.token_type in _TEXT_TOKENS:
            is_word = False
        if is_word and following.token_type is TokenType.L_PAREN and following is not token:
            is_part = before is not None and before.token_type is TokenType.DOT
            if word not in _BEFORE_BRACKETS or is_part or (is_quoted and word in _KEYWORDS):
                raise InputError(f"`{cut(token.text)}` is not a function that may be used here",
                                 _REMEDIES.get(word, _REMEDY))  # fmt: skip
        elif is_word and not is_quoted and word in _TELLING and word not in columns:
            raise InputError(f"`{word}` is not a function that may be used here", _REMEDY)
        before = token


_TEXT_TOKENS: Final = (
    TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER, TokenType.HEX_STRING, TokenType.NATIONAL_STRING,
)  # fmt: skip


def check_nodes(query: exp.Expr) -> None:
    """Raises InputError for a part of a query that is not of a plain kind."""
    for node in query.walk():
        if isinstance(node, exp.With) and node.recursive:
            raise InputError("the SQL has a WITH RECURSIVE, which may never end", "Write it without")
        if isinstance(node, exp.Column) and node.parts[0].name.lower() == "_metadata":
            raise InputError("`_metadata` describes files, not rows", "Name columns of the tables")
        if isinstance(node, exp.Like | exp.ILike):
            _check_pattern(node)
        if not isinstance(node, _PLAIN) or isinstance(node, _NOT_PLAIN):
            raise InputError(
                f"the SQL has an expression that is not allowed here ({_shown(node)})",
                f"Write it without. {_REMEDY}",
            )


def _check_pattern(like: exp.Like | exp.ILike) -> None:
    """Raises InputError for a LIKE that may never end.

    Java tries each wildcard at every position of a text, for each position of the wildcards before it. It
    does that for one row without checking whether the request has been cancelled.
    """
    pending = [like.expression]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Paren | exp.Tuple | exp.Any | exp.All):
            pending += node.iter_expressions()
        elif not isinstance(node, exp.Literal) or not node.is_string:
            raise InputError("the pattern of a LIKE is not a text", "Write it as one, or use contains(a, b)")
        elif node.name.count("%") + node.name.count("\\") > _WILDCARDS_MAX:
            what = f"the pattern of a LIKE has more than {_WILDCARDS_MAX} of % and backslashes"
            raise InputError(what, "Use fewer, or contains, startswith and endswith with AND")


def _shown(node: exp.Expr) -> str:
    return node.key.upper()
