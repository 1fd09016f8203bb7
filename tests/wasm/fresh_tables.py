# SPDX-License-Identifier: MIT
"""Run as a guest: tables of the snapshot that nobody has looked into are copied, merged, shortened and added to.  Prints
what is wrong, or how many there were."""
import sys

wrong, count = [], 0


def copy(text):
    return (text + "x")[:-1] if type(text) is str else text


def has_all(table, items):
    return len(table) == len(items) and all(table.get(copy(key)) is value for key, value in items)


def look_at(table, name):
    items = list(table.items())
    shorter, longer, merged, other, less = table.copy(), table.copy(), {}, dict(table), table.copy()
    if items and shorter.popitem() != items[-1]:
        wrong.append((name, "popitem"))
    merged.update(table)
    for key, value in [("a name that is new", None), *[(copy(key), None) for key, _ in items]]:
        if longer.setdefault(key, value) is not dict(items).get(key):
            wrong.append((name, "setdefault", key))
    for key, value in items:
        if less.pop(copy(key)) is not value:
            wrong.append((name, "pop", key))
    for what, table, left in (("shorter", shorter, items[:-1]), ("merged", merged, items), ("copy", other, items), ("union", {} | table, items),
                              ("unpacked", {**table}, items), ("longer", longer, [*items, ("a name that is new", None)]), ("less", less, [])):
        if not has_all(table, left):
            wrong.append((name, what))


for module in list(sys.modules.values()):
    look_at(vars(module), module.__name__)
    count += 1
for kind in list(object.__subclasses__()):
    look_at(dict(vars(kind)), kind.__name__)
    count += 1
print(*wrong[:5] or ("whole", count > 300), sep="\n" if wrong else " ")
