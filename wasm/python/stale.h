/* SPDX-License-Identifier: MIT */
/*
 * stale.h - goes into CPython's dictobject.c: a table of texts whose order nobody has asked for since the snapshot.
 *
 * Such a table has in each of its indices a number that none ever has; what is in it, and in which order, is in its
 * entries.  Whoever looks for something in it lays it first, by the seed of this start.
 */
#ifndef PYTHON_STALE_H
#define PYTHON_STALE_H

#include <Python.h>
#include <internal/pycore_dict.h>

#define STALE_BYTE 0xf0 /* no first two bytes of a table with less than 65536 indices: they count from -2 to their number */

void hashes_lay(PyDictKeysObject *keys);

static inline void lay_if_stale(PyDictKeysObject *keys)
{
	if ((unsigned char)keys->dk_indices[0] == STALE_BYTE && (unsigned char)keys->dk_indices[1] == STALE_BYTE)
		hashes_lay(keys);
}

#endif /* PYTHON_STALE_H */
