#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The validator itself: each keyword must accept and refuse, or every schema test is worth nothing."""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import jsonschema_min as js  # noqa: E402

ROWS = [  # schema, valid, not valid
    ({"type": "integer"}, [0, -3, 2.0], [1.5, True, "1", None]),
    ({"type": "number"}, [0, 1.5], [True, "1"]),
    ({"type": ["string", "null"]}, ["", None], [0, [], {}]),
    ({"type": "boolean"}, [True, False], [0, 1, None]),
    ({"const": 1}, [1], [2, True, "1", None]),
    ({"enum": ["a", 0]}, ["a", 0], ["b", False, None]),
    ({"required": ["a"]}, [{"a": None}, 3], [{}, {"b": 1}]),
    ({"properties": {"a": {"type": "string"}}}, [{}, {"a": "x", "b": 1}], [{"a": 1}]),
    ({"properties": {"a": True}, "additionalProperties": False}, [{"a": 1}, {}], [{"b": 1}]),
    ({"additionalProperties": {"type": "integer"}}, [{"x": 1}], [{"x": "1"}]),
    ({"items": {"minimum": 1}}, [[], [1, 2]], [[1, 0]]),
    ({"minItems": 1}, [[0]], [[]]),
    ({"minLength": 1}, ["a"], [""]),
    ({"minimum": 0, "maximum": 255}, [0, 255, "x"], [-1, 256]),
    ({"anyOf": [{"type": "null"}, {"minimum": 3}]}, [None, 3], [2]),
    ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, [3], [2, 3.5]),
    ({"$ref": "#/$defs/x", "$defs": {"x": {"const": 1}}}, [1], [2]),
]


def keywords(schema):
    """Every keyword of a schema, however deep."""
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for word, inner in schema.items():
        if word in ("properties", "$defs"):
            parts = inner.values()
        elif word in ("anyOf", "allOf"):
            parts = inner
        else:
            parts = [inner] if word in ("items", "additionalProperties") else []
        for part in parts:
            found |= keywords(part)
    return found


class Validator(unittest.TestCase):
    def test_rows(self):
        for schema, good, bad in ROWS:
            for value in good:
                self.assertEqual(js.check(schema, value), [], (schema, value))
            for value in bad:
                self.assertNotEqual(js.check(schema, value), [], (schema, value))

    def test_every_keyword_has_a_row(self):
        used = {word for schema, _, _ in ROWS for word in schema}
        self.assertEqual(set(js.RULES) - used, set())

    def test_unknown_keyword(self):
        with self.assertRaises(ValueError):
            js.check({"pattern": "x"}, "x")

    def test_our_schemas_use_known_keywords_only(self):
        docs = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs")
        names = [n for n in os.listdir(docs) if n.endswith(".schema.json")]
        self.assertEqual(len(names), 3)
        for name in names:
            with open(os.path.join(docs, name), encoding="utf-8") as f:
                schema = json.load(f)
            self.assertNotEqual(js.check(schema, {"schema": 1}), [], name)
            self.assertEqual(keywords(schema) - set(js.RULES) - js.ANNOTATIONS, set(), name)


if __name__ == "__main__":
    unittest.main()
