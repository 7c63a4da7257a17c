"""Built-in names of CEL and Jinja; an unknown name that is called is an error.

Listed here and not read from celpy and Jinja, whose own lists contain operators and
much that is not offered. The parent process reads them without importing either
library.
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
# celpy accepts each of them as a function and as a method
CALLABLE_NAMES = FUNCTIONS | METHODS | TYPES

# Jinja
GLOBALS = frozenset({"dict", "namespace", "range"})
