# SPDX-License-Identifier: MIT
"""Run as a guest: each table that can be reached finds what is in it, each text has the hash of its copy, each name is
interned once.  Prints what is wrong, or how much there was."""
import gc
import sys
import types

gc.unfreeze()
wrong, met, missing = [], {}, object()


def copy(text):
    longer = text + (b"x" if isinstance(text, bytes) else "x")
    return longer[:-1]


def look_into(table, get):
    for key, value in list(table.items()):
        if get(key, missing) is not value:
            wrong.append(("key", type(table), key))
        if type(key) in (str, bytes) and get(copy(key), missing) is not value:
            wrong.append(("copy of a key", type(table), key))


def look_at(thing):
    met[type(thing)] = met.get(type(thing), 0) + 1
    if isinstance(thing, dict):
        look_into(thing, lambda key, other: dict.get(thing, key, other))
    elif isinstance(thing, (set, frozenset)):
        for member in list(thing):
            if member not in thing or (type(member) in (str, bytes) and copy(member) not in thing):
                wrong.append(("member", thing, member))
    elif isinstance(thing, (str, bytes)):
        if hash(thing) != hash(copy(thing)) and type(thing).__hash__ in (str.__hash__, bytes.__hash__):
            wrong.append(("hash", type(thing), thing))
    elif isinstance(thing, type):
        look_into(vars(thing), vars(thing).get)
    elif isinstance(thing, types.CodeType):
        for name in thing.co_names:
            if sys.intern(copy(name)) is not name:
                wrong.append(("interned twice", thing, name))
    elif isinstance(thing, types.ModuleType):
        for name, value in list(vars(thing).items()):
            if getattr(thing, copy(name), missing) is not value:
                wrong.append(("name of a module", thing, name))


def of(thing):
    if isinstance(thing, types.CodeType):
        return [thing.co_consts, thing.co_names, thing.co_varnames, thing.co_freevars, thing.co_cellvars, thing.co_name, thing.co_qualname,
                thing.co_filename]
    if isinstance(thing, type):
        return [*gc.get_referents(thing), *vars(thing), *vars(thing).values(), *type.__subclasses__(thing)]
    if not isinstance(thing, (types.ModuleType, types.FunctionType)) and hasattr(type(thing), "__dict__") and type(getattr(thing, "__dict__", 0)) is dict:
        return [*gc.get_referents(thing), vars(thing)]
    return gc.get_referents(thing)


mine = {id(x) for x in (wrong, met, vars(), sys._getframe())}
waiting = [x for x in gc.get_objects() if id(x) not in mine] + [object]
known = {id(x) for x in waiting} | mine
mine.update((id(waiting), id(known)))
while waiting:
    thing = waiting.pop()
    if id(thing) in mine or isinstance(thing, types.FrameType):
        continue
    look_at(thing)
    for other in of(thing):
        if id(other) not in known:
            known.add(id(other))
            waiting.append(other)
if wrong:
    print(len(wrong), "wrong:", *wrong[:5], sep="\n")
else:
    print("whole", *(met[kind] > least for kind, least in ((dict, 1500), (frozenset, 50), (str, 8000), (type, 400), (types.CodeType, 1000))))
