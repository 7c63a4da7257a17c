"""Layouts of YAML 1.2.2, chapters 6 to 8, production by production: values as texts behind a key.

A text is everything between `key:` and the break at its end. Lines after the first are indented
for a key in column 0; `@` marks the columns by which they move with the key.
"""

# Production, and values that use it.
LAYOUTS = {
    # ---- chapter 6 ------------------------------------------------------------------------------
    "[63] s-indent": ["\n@  a: 1", "\n@      a: 1", "\n@ a: 1\n@ b: 2"],
    "[66] s-separate-in-line": ["  a", " \ta", "\t a", "   'a'"],
    "[67] s-line-prefix": [" a\n@  b", " 'a\n@    b'", " [a,\n@     b]"],
    "[70] l-empty": [" |\n@  a\n\n@  b", " 'a\n\n@  b'", " a\n\n@  b"],
    "[71] b-l-trimmed": [" 'a\n\n\n@  b'", " >\n@  a\n\n\n@  b"],
    "[72] b-as-space": [" >\n@  a\n@  b", ' "a\n@  b"'],
    "[74] s-flow-folded": [" a\n@   \n@  b", " 'a  \n@  b'"],
    "[75] c-nb-comment-text": [" a # one", " [a] #", " |  # two\n@  a", " 'a' # it's"],
    "[78] l-comment": ["\n@# one\n@  a: 1", "\n@  # one\n@  a: 1\n@  # two\n@  b: 2"],
    "[79] s-l-comments": [" # one\n@  # two\n@  a: 1", " # one\n\n@  - a"],
    "[80] s-separate": ["\n@  a", "\n@  'a'", "\n@  [a]", " # one\n@  a"],
    "[96] c-ns-properties": [" !!str 1", " &x a", " !!str &x a", " &x !!str a"],
    "[97] c-ns-tag-property": [" !!map {a: 1}", " !!seq [a]", " !<tag:yaml.org,2002:str> 1"],
    "[100] c-non-specific-tag": [" ! a", " ! 'a'"],
    "[101] c-ns-anchor-property": [" &x\n@  a: 1", " &x [a]", " &x |\n@  a"],
    # ---- chapter 7 ------------------------------------------------------------------------------
    "[104] c-ns-alias-node": [" *anchor", " [*anchor]", "\n@  - *anchor", "\n@  a: *anchor"],
    "[105] e-scalar": ["", " # none", " !!str", "\n@  a:\n@  b:", " {a: , b: }", "\n@  -\n@  - a"],
    "[107] nb-double-char": [' "\\x41\\u00e9\\U0001F600"', ' "\\t\\"\\\\ \\/"', ' "é"'],
    "[109] c-double-quoted": [' "a"', ' ""', ' "a: b # c"'],
    "[112] s-double-escaped": [' "a\\\n@  b"', ' "a \\\n@  \\ b"'],
    "[116] nb-double-multi-line": [' "a\n@  b\n\n@  c"', ' " a\n@  b "'],
    "[117] c-quoted-quote": [" 'it''s'", " ''''"],
    "[120] c-single-quoted": [" 'a'", " ''", " 'a: b # c'"],
    "[125] nb-single-multi-line": [" 'a\n@  b\n\n@  c'", " ' a\n@  b '"],
    "[126] ns-plain-first": [" -a", " ?a", " :a", " a-b", " ~", " .5", " 0x1F"],
    "[130] ns-plain-char": [" a#b", " a:b", " http://a.b/c?d#e", " 1:2"],
    "[131] ns-plain": [" a b", " yes", " 0o7", " 1e3", " null", " 2001-12-14"],
    "[135] ns-plain-multi-line": [" a\n@  b", " a\n@    b\n@  c", " a\n\n@  b"],
    "[137] c-flow-sequence": [" []", " [a, b]", " [a, b, ]", " [ a,b ]", " [\n@  a,\n@  b\n@  ]"],
    "[138] ns-s-flow-seq-entries": [" [a, [b, c]]", " [a, {b: c}]", " [a, # one\n@  b]"],
    "[139] ns-flow-seq-entry": [" [a: b]", " [? a : b]", " ['a': b, c]", ' ["a":b]'],
    "[140] c-flow-mapping": [" {}", " {a: 1}", " {a: 1, }", " { a: 1,b: 2 }", " {\n@  a: 1\n@  }"],
    "[142] ns-flow-map-entry": [" {? a : b}", " {a: b, ? c}", " {a}"],
    "[143] ns-flow-map-explicit-entry": [" {? a\n@  : b}"],
    "[145] ns-flow-map-yaml-key-entry": [" {a: , b}", " {a : b}"],
    "[148] c-ns-flow-map-json-key-entry": [' {"a":1}', " {'a':1, \"b\":[c]}"],
    "[150] ns-flow-pair": [" [a: 1, b: 2]", " [\n@  a: 1]"],
    "[156] ns-flow-yaml-content": [" {a: b c}", " [a b, c d]"],
    "[157] c-flow-json-content": [" ['a', \"b\", [c], {d: e}]"],
    # ---- chapter 8 ------------------------------------------------------------------------------
    "[162] c-b-block-header": [" |2-\n@   a", " |-2\n@   a", " >+1\n@ a\n", " |1\n@  a"],
    "[163] c-indentation-indicator": [" |2\n@    a\n@  b", " >2\n@    a\n@  b", " |4\n@    a"],
    "[164] c-chomping-indicator": [
        " |-\n@  a",
        " |+\n@  a\n",
        " |+\n@  a\n\n",
        " >-\n@  a",
        " >+\n@  a\n",
    ],
    "[165] b-chomped-last": [" |\n@  a", " |-\n@  a"],
    "[166] l-chomped-empty": [" |\n@  a\n", " |\n@  a\n\n", " >\n@  a\n\n"],
    "[169] l-trail-comments": [" |\n@  a\n# one", " |-\n@  a\n\n# one"],
    "[170] c-l+literal": [
        " |\n@  a\n@   b",
        " |\n@      a\n@      b",
        " |\n@  # a\n@  - b: c",
        " |\n\n@  a",
    ],
    "[174] c-l+folded": [" >\n@  a\n@  b\n\n@  c", " >\n\n@  a"],
    "[177] s-nb-spaced-text": [" >\n@  a\n@    b\n@  c", " >\n@  a\n@  \tb"],
    "[179] l-nb-spaced-lines": [" >\n@  a\n\n@    b\n@    c\n\n@  d"],
    "[183] l+block-sequence": ["\n@- a\n@- b", "\n@  - a\n@  - b", "\n@    - a"],
    "[184] c-l-block-seq-entry": [
        "\n@-   a",
        "\n@- [a]",
        "\n@- |\n@  a",
        "\n@-\n@  a",
        "\n@-\n@  - a",
    ],
    "[186] ns-l-compact-sequence": ["\n@- - a\n@  - b", "\n@-   - a\n@    - b", "\n@- - - a"],
    "[187] l+block-mapping": ["\n@  a: 1\n@  b: 2", "\n@   a: 1"],
    "[189] c-l-block-map-explicit-key": [
        "\n@  ? a\n@  : 1",
        "\n@  ? |\n@    a\n@  : 1",
        "\n@  ? a",
    ],
    "[190] l-block-map-explicit-value": ["\n@  ? a\n@  : - 1\n@    - 2"],
    "[192] ns-l-block-map-implicit-entry": ["\n@  'a': 1", '\n@  "a b": 1', "\n@  a b: 1"],
    "[194] c-l-block-map-implicit-value": ["\n@  a:\n@    - 1", "\n@  a:\n@  - 1", "\n@  a :  1"],
    "[195] ns-l-compact-mapping": ["\n@- a: 1\n@  b: 2", "\n@-   a: 1\n@    b: 2"],
    "[196] s-l+block-node": [" |\n@  a", "\n@  a:\n@    b:\n@      c"],
    "[197] s-l+flow-in-block": ["\n@  a b", "\n@  {a: 1}", "\n@   'a'"],
    "[199] s-l+block-scalar": [" !!str |\n@  a", "\n@  |\n@  a", "\n@  !!str >\n@  a"],
    "[200] s-l+block-collection": [" !!map\n@  a: 1", " !!seq\n@- a", " &y\n@- a", " # one\n@- a"],
}


def behind_key(value, column=0):
    """The text of a value behind a key in that column."""
    return value.replace("@", " " * column)
