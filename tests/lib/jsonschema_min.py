#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Validates JSON against the part of JSON Schema draft 2020-12 that docs/*.schema.json use.

usage: jsonschema_min.py SCHEMA [FILE]    FILE or standard input; exit 1 and one line for each fault
       jsonschema_min.check(schema, value) -> list of faults, empty = valid

A keyword that is not known here is an error, not ignored: a schema must never pass by saying
something that nobody checks.
"""
import json
import sys

ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description", "examples"}


def validate(value, schema):
    """The faults of a value, as check() gives them."""
    return check(schema, value)


def is_type(value, name):
    if name == "integer":
        return not isinstance(value, bool) and (isinstance(value, int) or
                                                isinstance(value, float) and value.is_integer())
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    return isinstance(value, kinds[name])


def same(a, b):
    """JSON equality: 1 is not true."""
    return type(a) is type(b) and a == b if isinstance(a, bool) or isinstance(b, bool) else a == b


def check(schema, value, path="$", root=None):
    root = schema if root is None else root
    if schema is True:
        return []
    if schema is False:
        return [f"{path}: nothing is allowed here"]
    faults = []
    for word, want in schema.items():
        if word in ANNOTATIONS:
            continue
        if word not in RULES:
            raise ValueError(f"keyword {word!r} is not known to this validator")
        faults += RULES[word](want, value, path, root, schema)
    return faults


def rule_ref(want, value, path, root, _):
    target = root
    if not want.startswith("#/"):
        raise ValueError(f"only local references are known: {want!r}")
    for step in want[2:].split("/"):
        target = target[step]
    return check(target, value, path, root)


def rule_type(want, value, path, *_):
    names = [want] if isinstance(want, str) else want
    if any(is_type(value, n) for n in names):
        return []
    return [f"{path}: {json.dumps(value)[:40]} is no {' or '.join(names)}"]


def rule_const(want, value, path, *_):
    return [] if same(want, value) else [f"{path}: is {json.dumps(value)[:40]}, not {json.dumps(want)}"]


def rule_enum(want, value, path, *_):
    return [] if any(same(w, value) for w in want) else [f"{path}: {json.dumps(value)[:40]} is none of {want}"]


def rule_required(want, value, path, *_):
    return [f"{path}: has no {n!r}" for n in want if isinstance(value, dict) and n not in value]


def rule_properties(want, value, path, root, _):
    if not isinstance(value, dict):
        return []
    return [f for n, s in want.items() if n in value for f in check(s, value[n], f"{path}.{n}", root)]


def rule_additional(want, value, path, root, schema):
    if not isinstance(value, dict):
        return []
    extra = [n for n in value if n not in schema.get("properties", {})]
    return [f for n in extra for f in check(want, value[n], f"{path}.{n}", root)]


def rule_items(want, value, path, root, _):
    if not isinstance(value, list):
        return []
    return [f for i, v in enumerate(value) for f in check(want, v, f"{path}[{i}]", root)]


def rule_min_items(want, value, path, *_):
    return [f"{path}: has fewer than {want} items"] if isinstance(value, list) and len(value) < want else []


def rule_min_length(want, value, path, *_):
    return [f"{path}: is shorter than {want}"] if isinstance(value, str) and len(value) < want else []


def rule_minimum(want, value, path, *_):
    return [f"{path}: {value} is below {want}"] if is_type(value, "number") and value < want else []


def rule_maximum(want, value, path, *_):
    return [f"{path}: {value} is above {want}"] if is_type(value, "number") and value > want else []


def rule_any_of(want, value, path, root, _):
    found = [check(s, value, path, root) for s in want]
    if any(not f for f in found):
        return []
    return min(found, key=len)


def rule_all_of(want, value, path, root, _):
    return [f for s in want for f in check(s, value, path, root)]


RULES = {"$ref": rule_ref, "type": rule_type, "const": rule_const, "enum": rule_enum,
         "required": rule_required, "properties": rule_properties,
         "additionalProperties": rule_additional, "items": rule_items, "minItems": rule_min_items,
         "minLength": rule_min_length, "minimum": rule_minimum, "maximum": rule_maximum,
         "anyOf": rule_any_of, "allOf": rule_all_of}


def refuse_constant(word):
    raise ValueError(f"{word} is no JSON")


def main(argv):
    if len(argv) not in (2, 3):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    with open(argv[1], encoding="utf-8") as f:
        schema = json.load(f)
    try:
        if len(argv) == 3:
            with open(argv[2], "rb") as f:
                text = f.read()
        else:
            text = sys.stdin.buffer.read()
        value = json.loads(text.decode("utf-8"), parse_constant=refuse_constant)
    except ValueError as e:
        print(f"no JSON: {e}")
        return 1
    faults = check(schema, value)
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
