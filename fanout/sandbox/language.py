"""The names that the languages have of their own: what is not among them is a mistake.

Named here and not asked of celpy and Jinja, whose own lists hold operators and much that is not
offered; and without importing either, for the parent reads them too.
"""

# CEL
MACROS = frozenset({"all", "exists", "exists_one", "filter", "map"})
METHODS = frozenset(
    {
        "contains",
        "endsWith",
        "getDate",
        "getDayOfMonth",
        "getDayOfWeek",
        "getDayOfYear",
        "getFullYear",
        "getHours",
        "getMilliseconds",
        "getMinutes",
        "getMonth",
        "getSeconds",
        "matches",
        "size",
        "startsWith",
    }
)
TYPES = frozenset(
    {
        "bool",
        "bytes",
        "double",
        "duration",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "timestamp",
        "type",
        "uint",
    }
)
FUNCTIONS = (TYPES - {"list", "map", "null_type"}) | {"dyn", "has", "matches", "size"}
CALLED = FUNCTIONS | METHODS | TYPES  # celpy takes each of them as a function and as a method

# Jinja
GLOBALS = frozenset({"dict", "namespace", "range"})
