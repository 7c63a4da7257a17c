"""Expressions and data for laws: all that closures compute, of fitting types and of others."""

from functools import cache

from hypothesis import strategies as st

NAMES = st.sampled_from(["text", "number", "truth", "fraction", "list", "map", "any", "gone"])
NUMBERS = st.sampled_from([0, 1, 2, -3, 7, 2**63 - 1, -(2**63)])
FRACTIONS = st.sampled_from([0.5, 2.0, -1.5, 1e300, 1.0, -0.0])
TEXTS = st.sampled_from(["", "a", "b", "ab", "bb", "1", "-12", "text", "æ", "\U0001f600"])
ODD = st.sampled_from([2**63, -(2**70), float("inf"), float("nan"), "\ud800", 1e20])
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, FRACTIONS, TEXTS)
DATA = st.recursive(
    st.one_of(SCALARS, SCALARS, SCALARS, ODD),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(NAMES, TEXTS), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = {
    "text": TEXTS,
    "number": NUMBERS,
    "truth": st.booleans(),
    "fraction": FRACTIONS,
    "list": st.one_of(st.lists(TEXTS, max_size=3), st.lists(NUMBERS, max_size=3)),
    "map": st.dictionaries(st.one_of(NAMES, TEXTS), SCALARS, max_size=4),
    "any": DATA,
}
OBJECTS = st.one_of(st.fixed_dictionaries(FIELDS), st.fixed_dictionaries({}, optional=FIELDS))
FULL = st.fixed_dictionaries({"target": OBJECTS, "other": OBJECTS})
ROWS = st.one_of(
    FULL, FULL, st.fixed_dictionaries({}, optional={"target": OBJECTS, "other": DATA, "size": DATA})
)
VARIABLES = st.sampled_from(["target", "target", "target", "other", ".target", "nobody", "size"])


def fields(name):
    """Two or one of it, usually."""
    return st.one_of(
        st.just(f"target.{name}"), st.sampled_from([f"other.{name}", f"target['{name}']"])
    )


def texts(of):
    literal = st.sampled_from(
        ["'a'", "'ab'", r"r'\a'", "'''b'''", r"'\u00e6'", "''", "'%s'", "'7'"]
    )
    return st.one_of(
        literal,
        fields("text"),
        st.builds("({} + {})".format, of("text"), of("text")),
        st.builds("string({})".format, st.one_of(of("number"), of("any"))),
        st.builds("{}.text".format, of("map")),
        st.builds("{}[{}]".format, of("map"), of("text")),
    )


def numbers(of):
    literal = st.sampled_from(
        ["0", "1", "-3", "0x1F", "9223372036854775807", "9223372036854775808"]
    )
    sign = st.sampled_from(["+", "-", "*", "/", "%"])
    return st.one_of(
        literal,
        fields("number"),
        st.builds("({} {} {})".format, of("number"), sign, of("number")),
        st.builds("-{}".format, of("number")),
        st.builds("size({})".format, st.one_of(of("list"), of("map"), of("text"), of("any"))),
        st.builds("{}.size()".format, st.one_of(of("list"), of("text"))),
        st.builds("int({})".format, st.one_of(of("fraction"), of("text"), of("any"))),
        st.builds("{}[{}]".format, of("list"), of("number")),
    )


def fractions(of):
    sign = st.sampled_from(["+", "-", "*", "/", "%"])
    return st.one_of(
        st.sampled_from(["1.5", "2.0", "0.0", "-0.0", "1e300", "1e999", ".5"]),
        fields("fraction"),
        st.builds("({} {} {})".format, of("fraction"), sign, of("fraction")),
        st.builds("-{}".format, of("fraction")),
        st.builds("double({})".format, st.one_of(of("number"), of("any"))),
    )


def truths(of):
    alike = st.one_of(
        st.tuples(of(kind), of(kind))
        for kind in ("text", "number", "fraction", "truth", "list", "map", "any")
    )
    order = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    method = st.sampled_from(["startsWith", "endsWith", "contains"])
    return st.one_of(
        st.sampled_from(["true", "false"]),
        fields("truth"),
        st.builds(lambda two, sign: f"({two[0]} {sign} {two[1]})", alike, order),
        st.builds("({} {} {})".format, of("truth"), st.sampled_from(["&&", "||"]), of("truth")),
        st.builds("!{}".format, of("truth")),
        st.builds("({} {} null)".format, of("any"), st.sampled_from(["==", "!="])),
        st.builds("({} in {})".format, of("any"), st.one_of(of("list"), of("map"))),
        st.builds("({} in {})".format, of("text"), st.one_of(of("list"), of("map"))),
        st.builds("{}.{}({})".format, of("text"), method, of("text")),
        st.builds("has({}.{})".format, st.one_of(VARIABLES, of("map"), of("any")), NAMES),
    )


def lists(of):
    return st.one_of(
        st.just("[]"),
        fields("list"),
        st.builds("[{}, {}]".format, of("text"), of("text")),
        st.builds("[{}]".format, of("any")),
        st.builds("({} + {})".format, of("list"), of("list")),
    )


def maps(of):
    return st.one_of(
        st.just("{}"),
        VARIABLES,
        fields("map"),
        st.builds("{{'text': {}, 'a': {}}}".format, of("text"), of("any")),
        st.builds("{{{}: {}}}".format, of("any"), of("any")),
    )


def anything(of):
    kinds = ("text", "number", "fraction", "truth", "list", "map")
    return st.one_of(
        *(of(kind) for kind in kinds),
        st.sampled_from(["null", "1u", "b'a'", "target.any", "type(1)"]),
        st.builds("{}.{}".format, of("map"), NAMES),
        st.builds("{}[{}]".format, of("any"), of("any")),
        st.builds("({} ? {} : {})".format, of("truth"), of("any"), of("any")),
        st.builds("{}.filter(x, x == {})".format, of("list"), of("any")),
    )


BUILDERS = {
    "text": texts,
    "number": numbers,
    "fraction": fractions,
    "truth": truths,
    "list": lists,
    "map": maps,
    "any": anything,
}


LEAVES = {
    "text": st.sampled_from(["target.text", "other.text", "'a'", "'ab'", "''", "target.map.a"]),
    "number": st.sampled_from(["target.number", "other.number", "0", "1", "7", "target.list[0]"]),
    "fraction": st.sampled_from(["target.fraction", "1.5", "0.0", "other.fraction"]),
    "truth": st.sampled_from(["target.truth", "true", "false", "has(target.any)"]),
    "list": st.sampled_from(["target.list", "other.list", "[]", "['a', 'b']", "[1, 7]"]),
    "map": st.sampled_from(["target", "target.map", "other", "{}", "{'a': 'b'}"]),
    "any": st.sampled_from(["null", "target.any", "target.text", "target.number", "target.gone"]),
}


@cache
def expressions(kind, depth):
    """Text of that kind mostly, and of any other now and then; so many operators deep."""
    if not depth:
        return LEAVES[kind]

    def below(other):
        fitting = expressions(other, depth - 1)
        return st.one_of(*[fitting] * 9, expressions("any", depth - 1))

    return BUILDERS[kind](below)


EXPRESSIONS = st.one_of(
    *(
        expressions(kind, depth)
        for kind in ("text", "number", "truth", "any")
        for depth in (1, 2, 3)
    )
)
