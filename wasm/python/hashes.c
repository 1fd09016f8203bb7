/* SPDX-License-Identifier: MIT */
#include <Python.h>
#include <datetime.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_hashtable.h>
#include <internal/pycore_object.h>
#include <internal/pycore_pyhash.h>
#include <internal/pycore_runtime.h>
#include <internal/pycore_setobject.h>
#include <internal/pycore_weakref.h>
#include "guest.h"
#include "hashes.h"
#include "stale.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define HASH_RANDOMIZATION 11 /* of sys.flags */

static _Noreturn void broken(const char *why, const void *what)
{
	fprintf(stderr, "hashes: %s (%p)\n", why, what);
	abort();
}

/* ---- Which objects there are ------------------------------------------------------------------ */

enum { GRAIN = 8, WATCHED_BYTES = 16 << 20 };

static unsigned char live[WATCHED_BYTES / GRAIN / 8]; /* a bit for each place where a block begins */
static PyMemAllocatorEx below;
extern char __heap_base[];

static void mark(const void *block, bool is_live)
{
	size_t at = (size_t)((const char *)block - __heap_base);
	unsigned char bit = (unsigned char)(1u << at / GRAIN % 8);

	if (block == NULL)
		return;
	if (at >= WATCHED_BYTES || (uintptr_t)block % GRAIN != 0)
		broken("an object lies where nobody watches", block);
	if (is_live)
		live[at / GRAIN / 8] |= bit;
	else
		live[at / GRAIN / 8] &= (unsigned char)~bit;
}

/* ---- Texts lie together -------------------------------------------------------------------------
 *
 * A run writes hashes into many texts.  Those that come with the library's code and by name from C are made in
 * one place, so that this takes few pages; at the end of the snapshot they are immortal, and nobody gives them back. */

enum { TEXT_BYTES = 1 << 20 };

static char *texts, *texts_end, *texts_last;
static unsigned is_text; /* what is allocated now is one */

PyObject *__real_PyUnicode_FromKindAndData(int kind, const void *data, Py_ssize_t len);
PyObject *__wrap_PyUnicode_FromKindAndData(int kind, const void *data, Py_ssize_t len);
PyObject *__real_PyUnicode_InternFromString(const char *text);
PyObject *__wrap_PyUnicode_InternFromString(const char *text);

PyObject *__wrap_PyUnicode_FromKindAndData(int kind, const void *data, Py_ssize_t len)
{
	is_text++;
	PyObject *made = __real_PyUnicode_FromKindAndData(kind, data, len);
	is_text--;
	return made;
}

PyObject *__wrap_PyUnicode_InternFromString(const char *text)
{
	is_text++;
	PyObject *made = __real_PyUnicode_InternFromString(text);
	is_text--;
	return made;
}

static size_t round_up(size_t size)
{
	return (size + GRAIN - 1) & ~(size_t)(GRAIN - 1);
}

static bool is_among_texts(const void *block)
{
	return texts != NULL && (const char *)block >= texts && (const char *)block < texts + TEXT_BYTES;
}

/* NULL: there is no room, or it is no text. */
static void *text_block(size_t size)
{
	char *block = texts_end;

	if (texts_end == NULL || is_text == 0 || size > (size_t)(texts + TEXT_BYTES - texts_end))
		return NULL;
	texts_last = block;
	texts_end += round_up(size);
	return block;
}

static void make_immortal(PyObject *object)
{
	object->ob_refcnt = _Py_IMMORTAL_REFCNT;
	if (PyUnicode_Check(object) && PyUnicode_CHECK_INTERNED(object) == SSTATE_INTERNED_MORTAL)
		((PyASCIIObject *)object)->state.interned = SSTATE_INTERNED_IMMORTAL;
}

/* ---- All blocks of objects are noted ---- */

static void *watched_malloc(void *user, size_t size)
{
	void *block = text_block(size);

	if (block == NULL)
		block = below.malloc(user, size);
	mark(block, true);
	return block;
}

static void *watched_calloc(void *user, size_t count, size_t size)
{
	void *block = below.calloc(user, count, size);

	mark(block, true);
	return block;
}

static void watched_free(void *user, void *block)
{
	mark(block, false);
	if (!is_among_texts(block))
		below.free(user, block);
	else if (block == texts_last && texts_end != NULL) /* it was there already */
		texts_end = block;
}

static void *watched_realloc(void *user, void *old, size_t size)
{
	size_t room = is_among_texts(old) ? (size_t)(texts_end - (char *)old) : 0;
	void *block = room > 0 ? below.malloc(user, size) : below.realloc(user, old, size);

	if (block == NULL)
		return NULL;
	if (room > 0)
		memcpy(block, old, room < size ? room : size);
	mark(old, false);
	mark(block, true);
	return block;
}

static void watch(void)
{
	PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &below);
	PyMemAllocatorEx watched = { below.ctx, watched_malloc, watched_calloc, watched_realloc, watched_free };
	PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &watched);
}

static void gather_texts(void)
{
	texts = texts_end = PyMem_RawMalloc(TEXT_BYTES);
	if (texts == NULL)
		broken("no memory for texts", NULL);
}

static void stop_watching(void)
{
	PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &below);
}

static bool can_be_read(const void *at, size_t len)
{
	size_t end = __builtin_wasm_memory_size(0) * 65536;

	return (uintptr_t)at % sizeof(void *) == 0 && (uintptr_t)at >= 1024 && (uintptr_t)at <= end - len;
}

static bool is_type(PyTypeObject *type)
{
	PyTypeObject *meta = can_be_read(type, sizeof *type) ? Py_TYPE(type) : NULL;

	return can_be_read(meta, sizeof *meta) && Py_TYPE(meta) == &PyType_Type && PyType_HasFeature(meta, Py_TPFLAGS_TYPE_SUBCLASS);
}

/* A type says what lies before its objects in their blocks; a block without a type is none of an object. */
static PyObject *object_of(char *block)
{
	for (size_t before = 0; before <= 2 * sizeof(PyGC_Head); before += sizeof(PyGC_Head)) {
		PyObject *object = (PyObject *)(block + before);
		if (is_type(Py_TYPE(object)) && _PyType_PreHeaderSize(Py_TYPE(object)) == before)
			return Py_REFCNT(object) > 0 ? object : NULL; /* 0: free, and kept for the next of its kind */
	}
	return NULL;
}

static void each_object(void (*take)(PyObject *object))
{
	for (size_t i = 0; i < sizeof live; i++)
		for (unsigned bits = live[i]; bits != 0; bits &= bits - 1) {
			size_t place = i * 8 + (size_t)__builtin_ctz(bits);
			PyObject *object = object_of(__heap_base + place * GRAIN);
			if (object != NULL)
				take(object);
		}
}

/* ---- Which tables there are ------------------------------------------------------------------- */

/* Who is asked for its hash must find what it asks: tables of texts alone come first, those whose keys run code last. */
enum { TEXTS = 0, PLAIN = 1, CODE = 100, TABLES_MAX = 8192 };

typedef struct table {
	void *at; /* PyDictKeysObject or PySetObject */
	unsigned short rank;
	bool is_set;
} table;

static table tables[TABLES_MAX];
static size_t table_count;

static bool is_dummy(const setentry *entry)
{
	return entry->key == NULL || entry->hash == -1;
}

static unsigned rank_of(PyObject *key)
{
	hashfunc hash = Py_TYPE(key)->tp_hash;
	unsigned rank = PLAIN, of_one;

	if (hash == PyTuple_Type.tp_hash) {
		for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
			of_one = rank_of(PyTuple_GET_ITEM(key, i));
			rank = of_one > rank ? of_one : rank;
		}
		return rank;
	}
	if (hash == PyFrozenSet_Type.tp_hash) { /* of what lies in its own table, which is there by then */
		const PySetObject *set = (PySetObject *)key;
		for (Py_ssize_t i = 0; i <= set->mask; i++) {
			of_one = is_dummy(&set->table[i]) ? PLAIN : rank_of(set->table[i].key);
			rank = of_one > rank ? of_one : rank;
		}
		return rank + 1;
	}
	return hash == PyUnicode_Type.tp_hash || hash == PyBytes_Type.tp_hash || hash == PyLong_Type.tp_hash || hash == PyFloat_Type.tp_hash ||
			       hash == PyBaseObject_Type.tp_hash ?
		       PLAIN :
		       CODE;
}

static void add(void *at, unsigned rank, bool is_set)
{
	if (table_count == TABLES_MAX)
		broken("there are too many tables", at);
	tables[table_count++] = (table){ at, (unsigned short)rank, is_set };
}

static void add_keys(PyDictKeysObject *keys)
{
	unsigned rank = TEXTS;

	if (keys == NULL || keys->dk_nentries == 0)
		return;
	if (keys->dk_kind == DICT_KEYS_GENERAL)
		for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
			PyObject *key = DK_ENTRIES(keys)[i].me_key;
			unsigned of_one = key == NULL ? PLAIN : rank_of(key);
			rank = of_one > rank ? of_one : rank;
		}
	add(keys, rank, false);
}

static void add_set(PySetObject *set)
{
	unsigned rank = PLAIN;

	for (Py_ssize_t i = 0; i <= set->mask; i++) {
		unsigned of_one = is_dummy(&set->table[i]) ? PLAIN : rank_of(set->table[i].key);
		rank = of_one > rank ? of_one : rank;
	}
	if (set->used > 0)
		add(set, rank, true);
}

static void add_tables_of(PyObject *object)
{
	if (PyAnySet_Check(object))
		add_set((PySetObject *)object);
	else if (PyDict_Check(object))
		add_keys(((PyDictObject *)object)->ma_keys);
	else if (PyType_Check(object) && PyType_HasFeature((PyTypeObject *)object, Py_TPFLAGS_HEAPTYPE))
		add_keys(((PyHeapTypeObject *)object)->ht_cached_keys);
	else if (strcmp(Py_TYPE(object)->tp_name, "functools._lru_list_elem") == 0)
		broken("a cache of functools holds hashes", object);
	if (PyODict_Check(object) && PyDict_GET_SIZE(object) > 0)
		broken("an OrderedDict holds hashes", object);
}

static int by_rank_and_place(const void *a, const void *b)
{
	const table *one = a, *other = b;

	if (one->rank != other->rank)
		return one->rank < other->rank ? -1 : 1;
	return one->at < other->at ? -1 : one->at > other->at;
}

/* Of one type's instances many dictionaries share one table. */
static void find_tables(void)
{
	size_t kept = 0;

	table_count = 0;
	each_object(add_tables_of);
	qsort(tables, table_count, sizeof *tables, by_rank_and_place);
	for (size_t i = 0; i < table_count; i++)
		if (kept == 0 || tables[kept - 1].at != tables[i].at)
			tables[kept++] = tables[i];
	table_count = kept;
}

/* ---- Hashes that objects keep ----------------------------------------------------------------- */

/* A weak reference and a context's variable keep theirs, which are of an object's place. */
static void forget_hash_of(PyObject *object)
{
	_Py_COMP_DIAG_PUSH
	_Py_COMP_DIAG_IGNORE_DEPR_DECLS
	if (PyUnicode_Check(object))
		((PyASCIIObject *)object)->hash = -1;
	else if (PyBytes_Check(object) && ((PyBytesObject *)object)->ob_shash != -1)
		((PyBytesObject *)object)->ob_shash = -1;
	else if (PyFrozenSet_Check(object))
		((PySetObject *)object)->hash = -1;
	else if (PyMemoryView_Check(object))
		((PyMemoryViewObject *)object)->hash = -1;
	else if (PyDateTimeAPI != NULL && (PyDate_Check(object) || PyTime_Check(object)))
		((_PyDateTime_BaseTZInfo *)object)->hashcode = -1;
	_Py_COMP_DIAG_POP
}

static int forget_text(_Py_hashtable_t *of, const void *key, const void *value, void *user)
{
	(void)of, (void)value, (void)user;
	forget_hash_of((PyObject *)key);
	return 0;
}

static void forget_hashes(void)
{
	each_object(forget_hash_of);
	_Py_hashtable_foreach(_PyRuntime.cached_objects.interned_strings, forget_text, NULL);
	for (int i = 0; i < 256; i++)
		forget_hash_of((PyObject *)&_Py_SINGLETON(bytes_characters)[i].ob);
	forget_hash_of((PyObject *)&_Py_SINGLETON(bytes_empty));
}

/* ---- Laying tables anew ----------------------------------------------------------------------- */

static Py_hash_t hash_of_text(PyObject *text)
{
	Py_hash_t kept = ((PyASCIIObject *)text)->hash;

	return kept != -1 ? kept : _Py_HashBytes(PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text) * PyUnicode_KIND(text));
}

static Py_hash_t hash_of(PyObject *key)
{
	Py_hash_t hash = PyUnicode_CheckExact(key) ? hash_of_text(key) : PyObject_Hash(key);

	if (hash == -1)
		broken("a key has no hash any more", key);
	return hash;
}

/* Probes go as those of the interpreter's own lookups (dictobject.c), or those would not find it. */
#define PLACE(slot_type) \
	do { \
		slot_type *slots = (slot_type *)keys->dk_indices; \
		while (slots[at] >= 0) { \
			perturb >>= 5; \
			at = (at * 5 + perturb + 1) & mask; \
		} \
		slots[at] = (slot_type)index; \
	} while (0)

static void place_index(PyDictKeysObject *keys, Py_hash_t hash, Py_ssize_t index)
{
	size_t mask = (size_t)DK_SIZE(keys) - 1, perturb = (size_t)hash, at = perturb & mask;

	if (DK_LOG_SIZE(keys) < 8)
		PLACE(int8_t);
	else if (DK_LOG_SIZE(keys) < 16)
		PLACE(int16_t);
	else
		PLACE(int32_t);
}

/* What is in it is where it was; the texts' hashes are not written down, for that would be a page for each. */
void hashes_lay(PyDictKeysObject *keys)
{
	const PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);

	if (DK_LOG_SIZE(keys) >= 16 && memcmp(keys->dk_indices, (unsigned char[]){ STALE_BYTE, STALE_BYTE, STALE_BYTE, STALE_BYTE }, 4) != 0)
		return;
	memset(keys->dk_indices, 0xff, (size_t)1 << keys->dk_log2_index_bytes);
	for (Py_ssize_t i = 0; i < keys->dk_nentries; i++)
		if (entries[i].me_key != NULL)
			place_index(keys, hash_of_text(entries[i].me_key), i);
}

static void set_stale(PyDictKeysObject *keys)
{
	memset(keys->dk_indices, STALE_BYTE, (size_t)1 << keys->dk_log2_index_bytes);
}

/* Whether a hash has changed; all are asked for before the table is none for a moment. */
static bool lay_keys(PyDictKeysObject *keys)
{
	PyDictKeyEntry *entries = DK_ENTRIES(keys);
	bool changed = false;

	for (Py_ssize_t i = 0; i < keys->dk_nentries; i++)
		if (entries[i].me_key != NULL) {
			Py_hash_t hash = hash_of(entries[i].me_key);
			changed = changed || hash != entries[i].me_hash;
			entries[i].me_hash = hash;
		}
	memset(keys->dk_indices, 0xff, (size_t)1 << keys->dk_log2_index_bytes);
	for (Py_ssize_t i = 0; i < keys->dk_nentries; i++)
		if (entries[i].me_key != NULL)
			place_index(keys, entries[i].me_hash, i);
	return changed;
}

enum { NEAR_ENTRIES = 512 }; /* on the stack, whose pages are written to anyway */

/* As set_add_entry() of setobject.c will look for it: up to nine slots on, then elsewhere. */
static void place_entry(PySetObject *set, setentry entry)
{
	size_t mask = (size_t)set->mask, perturb = (size_t)entry.hash, at = perturb & mask;

	for (;;) {
		size_t last = at + 9 <= mask ? at + 9 : at;
		for (size_t i = at; i <= last; i++)
			if (set->table[i].key == NULL) {
				set->table[i] = entry;
				return;
			}
		perturb >>= 5;
		at = (at * 5 + 1 + perturb) & mask;
	}
}

static bool lay_set(PySetObject *set)
{
	size_t count = (size_t)set->mask + 1, kept = 0;
	setentry near[NEAR_ENTRIES], *old = count > NEAR_ENTRIES ? PyMem_RawMalloc(count * sizeof *old) : near;
	bool changed = false;

	if (old == NULL)
		broken("no memory for a set", set);
	for (size_t i = 0; i < count; i++)
		if (!is_dummy(&set->table[i])) {
			old[kept] = set->table[i];
			old[kept].hash = hash_of(old[kept].key);
			changed = changed || old[kept].hash != set->table[i].hash;
			kept++;
		}
	memset(set->table, 0, count * sizeof *set->table);
	for (size_t i = 0; i < kept; i++)
		place_entry(set, old[i]);
	set->fill = set->used;
	set->finger = 0;
	if (old != near)
		PyMem_RawFree(old);
	return changed;
}

static bool lay(const table *t)
{
	if (t->is_set)
		return lay_set(t->at);
	if (t->rank > TEXTS)
		return lay_keys(t->at);
	set_stale(t->at);
	return true;
}

/* The interpreter's own kind of table: chains. */
static void lay_chains(_Py_hashtable_t *of)
{
	_Py_slist_item_t *all = NULL;

	for (size_t i = 0; i < of->nbuckets; i++)
		while (of->buckets[i].head != NULL) {
			_Py_slist_item_t *entry = of->buckets[i].head;
			of->buckets[i].head = entry->next;
			entry->next = all;
			all = entry;
		}
	while (all != NULL) {
		_Py_hashtable_entry_t *entry = (_Py_hashtable_entry_t *)all;
		all = all->next;
		entry->key_hash = of->hash_func(entry->key);
		_Py_slist_t *bucket = &of->buckets[entry->key_hash & (of->nbuckets - 1)];
		entry->_Py_slist_item.next = bucket->head;
		bucket->head = &entry->_Py_slist_item;
	}
}

/* Leaves the tables that depend on the seed, if `narrow`. */
static void lay_all(bool narrow)
{
	size_t kept = 0;

	for (size_t i = 0; i < table_count; i++)
		if (lay(&tables[i]) || !narrow)
			tables[kept++] = tables[i];
	table_count = kept;
}

/* ---- Tables without a seed -------------------------------------------------------------------- */

static Py_uhash_t place_of(const unsigned char *at, size_t len) /* FNV-1a */
{
	Py_uhash_t place = 2166136261u;

	while (len-- > 0)
		place = (place ^ *at++) * 16777619u;
	return place;
}

static Py_uhash_t place_of_name(const void *name)
{
	return place_of(name, strlen(name));
}

static Py_uhash_t place_of_text(const void *text)
{
	return place_of(PyUnicode_DATA((PyObject *)text), (size_t)(PyUnicode_GET_LENGTH((PyObject *)text) * PyUnicode_KIND((PyObject *)text)));
}

/* The modules that are linked in, by name: none of a program's own. */
static void settle_modules(void)
{
	_Py_hashtable_t *all = _PyRuntime.imports.extensions.hashtable;

	if (all == NULL)
		return;
	all->hash_func = place_of_name;
	lay_chains(all);
}

/* Nearly each start asks for some, and they are ten thousand.  So those of the snapshot go where the static ones are, into
 * a table that is never added to any more, by a function without a seed; texts of a program's own are not among them. */
static void settle_interned(void)
{
	_Py_hashtable_t *all = _PyRuntime.cached_objects.interned_strings;
	PyObject *dict = PyInterpreterState_Get()->cached_objects.interned_strings, *text;
	Py_ssize_t at = 0;

	all->hash_func = place_of_text;
	lay_chains(all);
	while (PyDict_Next(dict, &at, &text, NULL))
		if (_Py_hashtable_get(all, text) == NULL && _Py_hashtable_set(all, text, text) < 0)
			broken("no memory for interned texts", text);
	PyDict_Clear(dict); /* they are immortal: it owns no reference */
}

static void settle_texts(void)
{
	each_object(make_immortal);
	if (PyMem_RawRealloc(texts, (size_t)(texts_end - texts)) != texts)
		broken("texts do not stay in their place", texts);
	texts = texts_end = texts_last = NULL;
}

/* ---- Whether it holds ------------------------------------------------------------------------- */

/* Of a dead object's weak reference nobody could make the hash anew. */
static void check_reference(PyObject *object)
{
	PyObject *to = NULL;

	if (!PyWeakref_Check(object) || ((PyWeakReference *)object)->hash == -1)
		return;
	if (PyWeakref_GetRef(object, &to) == 1 && PyObject_Hash(to) != ((PyWeakReference *)object)->hash)
		broken("a weak reference keeps a hash", object);
	Py_XDECREF(to);
}

static void check_tables(void)
{
	for (size_t i = 0; i < table_count; i++) {
		PyDictKeysObject *keys = tables[i].at;
		if (tables[i].is_set)
			for (Py_ssize_t n = 0; n <= ((PySetObject *)tables[i].at)->mask; n++) {
				setentry *entry = &((PySetObject *)tables[i].at)->table[n];
				if (!is_dummy(entry) && (PyObject_Hash(entry->key) != entry->hash || PySet_Contains(tables[i].at, entry->key) != 1))
					broken("a set does not find a member", entry->key);
			}
		else if (tables[i].rank == TEXTS)
			for (Py_ssize_t n = 0; n < keys->dk_nentries; n++) {
				PyObject *key = DK_UNICODE_ENTRIES(keys)[n].me_key;
				if (key != NULL && _PyDictKeys_StringLookup(keys, key) != n)
					broken("a dictionary does not find a text", key);
			}
		else
			for (Py_ssize_t n = 0; n < keys->dk_nentries; n++) {
				PyDictKeyEntry *entry = &DK_ENTRIES(keys)[n];
				if (entry->me_key != NULL && PyObject_Hash(entry->me_key) != entry->me_hash)
					broken("a dictionary holds another hash than its key", entry->me_key);
			}
	}
}

/* ---- Tables lie together ---------------------------------------------------------------------- */

enum { MOVED = 255 }; /* in dk_log2_size: the first word says whereto */

static size_t size_of_keys(const PyDictKeysObject *keys)
{
	size_t entry = keys->dk_kind == DICT_KEYS_GENERAL ? sizeof(PyDictKeyEntry) : sizeof(PyDictUnicodeEntry);

	return sizeof *keys + ((size_t)1 << keys->dk_log2_index_bytes) + entry * ((size_t)DK_SIZE(keys) * 2 / 3);
}

/* Within one stretch of memory: what would fill a hole elsewhere is held until all are placed. */
static void *block_within(char *from, size_t len, size_t size, void **held)
{
	for (;;) {
		char *block = PyMem_RawMalloc(size);
		if (block == NULL)
			broken("no memory for a table", NULL);
		if (block >= from && block + size <= from + len)
			return block;
		*(void **)block = *held;
		*held = block;
	}
}

static void follow(PyObject *object)
{
	PyDictKeysObject **keys = PyDict_Check(object) ? &((PyDictObject *)object)->ma_keys
				  : PyType_Check(object) && PyType_HasFeature((PyTypeObject *)object, Py_TPFLAGS_HEAPTYPE)
					  ? &((PyHeapTypeObject *)object)->ht_cached_keys
					  : NULL;

	if (keys != NULL && *keys != NULL && (*keys)->dk_log2_size == MOVED)
		*keys = *(PyDictKeysObject **)*keys;
}

/* A run writes into many of them. */
static void move_tables(void)
{
	size_t len = 0;
	void *held = NULL, *old[TABLES_MAX];

	for (size_t i = 0; i < table_count; i++)
		len += tables[i].is_set ? 0 : size_of_keys(tables[i].at) + 32;
	char *from = PyMem_RawMalloc(len);
	PyMem_RawFree(from);
	for (size_t i = 0; i < table_count; i++) {
		if (tables[i].is_set)
			continue;
		PyDictKeysObject *keys = old[i] = tables[i].at;
		void *to = block_within(from, len, size_of_keys(keys), &held);
		tables[i].at = memcpy(to, keys, size_of_keys(keys));
		*(void **)keys = to;
		keys->dk_log2_size = MOVED;
	}
	each_object(follow);
	for (size_t i = 0; i < table_count; i++)
		if (!tables[i].is_set)
			PyMem_Free(old[i]);
	while (held != NULL) {
		void *next = *(void **)held;
		PyMem_RawFree(held);
		held = next;
	}
}

/* ---- The seed --------------------------------------------------------------------------------- */

static bool is_drawn;

static void set_seed(unsigned long seed)
{
	uint32_t x = (uint32_t)seed;

	for (size_t i = 0; i < sizeof _Py_HashSecret.uc; i++) { /* the same seed, the same hashes as CPython's everywhere */
		x = x * 214013 + 2531011;
		_Py_HashSecret.uc[i] = seed == 0 ? 0 : (unsigned char)(x >> 16);
	}
}

void hashes_watch(void)
{
	gather_texts();
	watch();
}

/* They are laid when somebody asks. */
static void leave_texts(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < table_count; i++)
		if (tables[i].rank == TEXTS)
			set_stale(tables[i].at);
		else
			tables[kept++] = tables[i];
	table_count = kept;
}

void hashes_freeze(void)
{
	PyDateTime_IMPORT;
	PyGC_Collect(); /* what is kept for reuse goes, too */
	each_object(make_immortal);
	settle_interned();
	settle_modules();
	find_tables();
	forget_hashes();
	set_seed(1);
	lay_all(true);
	settle_texts();
	move_tables();
	each_object(check_reference);
	check_tables();
	leave_texts();
	forget_hashes();
	stop_watching();
}

static void draw(void)
{
	guest_random(&_Py_HashSecret, sizeof _Py_HashSecret);
	lay_all(false);
	is_drawn = true;
}

void hashes_rehearse(void)
{
	watch();
	draw();
}

void hashes_rehearsed(void)
{
	PyGC_Collect();
	stop_watching();
}

/* Tables that a rehearsal has made or moved are found as those of the snapshot were. */
static void renew_by(unsigned long seed)
{
	if (is_drawn) {
		forget_hashes();
		find_tables();
	}
	set_seed(seed);
	lay_all(false);
	is_drawn = true;
	if (seed == 0)
		PyStructSequence_SetItem(PySys_GetObject("flags"), HASH_RANDOMIZATION, PyLong_FromLong(0));
}

bool hashes_renew(const char *wish)
{
	char *end;

	if (wish == NULL || *wish == '\0' || strcmp(wish, "random") == 0) {
		if (!is_drawn)
			draw();
		return true;
	}
	errno = 0;
	unsigned long long seed = strtoull(wish, &end, 10);
	if (*end != '\0' || errno == ERANGE || seed > UINT32_MAX)
		return false;
	renew_by((unsigned long)seed);
	return true;
}
