/* SPDX-License-Identifier: MIT */
/*
 * main.c - CPython for the wasm walls: `python3 FILE ARG...`.
 *
 * snapshot() runs while the module is built: an interpreter that has started, with its standard
 * library in one file and what most programs import already there.  main() runs at each start: it
 * renews what was frozen (_guest.py does the part that is Python's) and runs the file as CPython's own
 * main does.  The end is as CPython's, too, but for the objects of the snapshot: taking those apart would
 * cost more than all the rest and be seen by nobody, so only what the program made is finalized.
 */
#include <Python.h>
#include <internal/pycore_moduleobject.h>
#include "guest.h"
#include "hashes.h"
#include "session.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char library[] = "/usr/local/lib/python313.zip";
static PyObject *guest; /* module _guest, and of its functions what each run calls */
static PyObject *guest_start_program, *guest_end[3];
static bool ready;

/* ---- The snapshot ----------------------------------------------------------------------------- */

static void check(PyStatus status)
{
	if (PyStatus_Exception(status))
		Py_ExitStatusException(status);
}

static void preconfigure(void)
{
	PyPreConfig config;

	PyPreConfig_InitPythonConfig(&config);
	config.utf8_mode = 1;
	config.use_environment = 0;
	check(Py_PreInitialize(&config));
}

static void configure(PyConfig *config)
{
	wchar_t *path = Py_DecodeLocale(library, NULL);

	PyConfig_InitPythonConfig(config);
	config->use_environment = 0;
	config->parse_argv = 0;
	config->install_signal_handlers = 0;
	config->write_bytecode = 0;
	config->user_site_directory = 0;
	config->pathconfig_warnings = 0;
	config->use_hash_seed = 1; /* the snapshot of the same sources is the same; hashes.c draws anew */
	config->hash_seed = 20201;
	config->module_search_paths_set = 1;
	check(PyWideStringList_Append(&config->module_search_paths, path));
	check(PyConfig_SetBytesString(config, &config->program_name, "python3"));
	check(PyConfig_SetBytesString(config, &config->executable, "/usr/local/bin/python3"));
	check(PyConfig_SetBytesString(config, &config->base_executable, "/usr/local/bin/python3"));
	check(PyConfig_SetBytesString(config, &config->prefix, "/usr/local"));
	check(PyConfig_SetBytesString(config, &config->base_prefix, "/usr/local"));
	check(PyConfig_SetBytesString(config, &config->exec_prefix, "/usr/local"));
	check(PyConfig_SetBytesString(config, &config->base_exec_prefix, "/usr/local"));
	PyMem_RawFree(path);
}

static PyObject *function(const char *name)
{
	PyObject *found = PyObject_GetAttrString(guest, name);

	if (found == NULL)
		abort();
	return found;
}

static void snapshot(void)
{
	static const char *const ends[] = { "run_exit_functions", "drop_modules", "flush" };
	PyConfig config;

	PyImport_AppendInittab("_control", session_module);
	preconfigure();
	hashes_watch();
	configure(&config);
	check(Py_InitializeFromConfig(&config));
	PyConfig_Clear(&config);
	guest = PyImport_ImportModule("_guest");
	PyObject *done = guest == NULL ? NULL : PyObject_CallMethod(guest, "freeze", NULL);
	if (done == NULL) {
		PyErr_Print();
		abort();
	}
	Py_DECREF(done);
	guest_start_program = function("start");
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		guest_end[i] = function(ends[i]);
	hashes_freeze();
	ready = true;
}

extern void __wasm_call_ctors(void), __wasm_call_dtors(void);
extern int __main_void(void);
_Noreturn extern void __wasi_proc_exit(uint32_t code);

/* While the snapshot is made, what differs from one making to the next is the same: what is drawn, times, and where
 * a file lies.  Some of it stays in memory (an allocator's cookies, a freed stat), and all of it is drawn anew where
 * it matters (renew(), random of the run).  The linker puts these before wasi-libc's own. */
static bool is_making;

__wasi_errno_t __real___wasi_random_get(uint8_t *data, __wasi_size_t len);
__wasi_errno_t __wrap___wasi_random_get(uint8_t *data, __wasi_size_t len);
__wasi_errno_t __real___wasi_clock_time_get(__wasi_clockid_t id, __wasi_timestamp_t precision, __wasi_timestamp_t *now);
__wasi_errno_t __wrap___wasi_clock_time_get(__wasi_clockid_t id, __wasi_timestamp_t precision, __wasi_timestamp_t *now);
__wasi_errno_t __real___wasi_fd_filestat_get(__wasi_fd_t fd, __wasi_filestat_t *st);
__wasi_errno_t __wrap___wasi_fd_filestat_get(__wasi_fd_t fd, __wasi_filestat_t *st);
__wasi_errno_t __real___wasi_fd_seek(__wasi_fd_t fd, __wasi_filedelta_t offset, __wasi_whence_t whence, __wasi_filesize_t *at);
__wasi_errno_t __wrap___wasi_fd_seek(__wasi_fd_t fd, __wasi_filedelta_t offset, __wasi_whence_t whence, __wasi_filesize_t *at);
__wasi_errno_t __real___wasi_path_filestat_get(__wasi_fd_t fd, __wasi_lookupflags_t flags, const char *path, __wasi_filestat_t *st);
__wasi_errno_t __wrap___wasi_path_filestat_get(__wasi_fd_t fd, __wasi_lookupflags_t flags, const char *path, __wasi_filestat_t *st);

__wasi_errno_t __wrap___wasi_random_get(uint8_t *data, __wasi_size_t len)
{
	if (!is_making)
		return __real___wasi_random_get(data, len);
	for (__wasi_size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 37 + 11);
	return __WASI_ERRNO_SUCCESS;
}

__wasi_errno_t __wrap___wasi_clock_time_get(__wasi_clockid_t id, __wasi_timestamp_t precision, __wasi_timestamp_t *now)
{
	if (!is_making)
		return __real___wasi_clock_time_get(id, precision, now);
	*now = 1700000000ull * 1000000000;
	return __WASI_ERRNO_SUCCESS;
}

static __wasi_errno_t anywhere(__wasi_errno_t rc, __wasi_filestat_t *st)
{
	if (rc == __WASI_ERRNO_SUCCESS && is_making) {
		st->dev = st->ino = st->nlink = 1;
		st->atim = st->mtim = st->ctim = 1700000000ull * 1000000000;
	}
	return rc;
}

/* The builder's streams are as the host's are at a start. */
static bool is_stream(__wasi_fd_t fd)
{
	return is_making && fd < 3;
}

__wasi_errno_t __wrap___wasi_fd_filestat_get(__wasi_fd_t fd, __wasi_filestat_t *st)
{
	if (is_stream(fd))
		*st = (__wasi_filestat_t){ .filetype = __WASI_FILETYPE_UNKNOWN };
	return anywhere(is_stream(fd) ? __WASI_ERRNO_SUCCESS : __real___wasi_fd_filestat_get(fd, st), st);
}

__wasi_errno_t __wrap___wasi_fd_seek(__wasi_fd_t fd, __wasi_filedelta_t offset, __wasi_whence_t whence, __wasi_filesize_t *at)
{
	return is_stream(fd) ? __WASI_ERRNO_SPIPE : __real___wasi_fd_seek(fd, offset, whence, at);
}

__wasi_errno_t __wrap___wasi_path_filestat_get(__wasi_fd_t fd, __wasi_lookupflags_t flags, const char *path, __wasi_filestat_t *st)
{
	return anywhere(__real___wasi_path_filestat_get(fd, flags, path, st), st);
}

__attribute__((export_name("wizer.initialize"))) void guest_snapshot(void)
{
	is_making = true;
	__wasm_call_ctors();
	snapshot();
	is_making = false;
}

/* _start of the module with the snapshot in it: constructors have run already. */
__attribute__((export_name("wizer.resume"))) void guest_resume(void)
{
	int code = __main_void();

	__wasm_call_dtors();
	__wasi_proc_exit((uint32_t)code);
}

/* ---- A start ---------------------------------------------------------------------------------- */

extern char **environ;

/* start(argv, environ as bytes) */
static bool renew(int argc, char **argv)
{
	PyObject *args = PyList_New(0), *env = PyList_New(0), *done = NULL;

	for (int i = 0; i < argc && args != NULL; i++) {
		PyObject *word = PyUnicode_DecodeFSDefault(argv[i]);
		if (word == NULL || PyList_Append(args, word) < 0)
			goto failed;
		Py_DECREF(word);
	}
	for (char **at = environ; env != NULL && at != NULL && *at != NULL; at++) {
		PyObject *entry = PyBytes_FromString(*at);
		if (entry == NULL || PyList_Append(env, entry) < 0)
			goto failed;
		Py_DECREF(entry);
	}
	if (args != NULL && env != NULL)
		done = PyObject_CallFunctionObjArgs(guest_start_program, args, env, NULL);
failed:
	Py_XDECREF(args);
	Py_XDECREF(env);
	if (done == NULL)
		PyErr_Print();
	Py_XDECREF(done);
	return done != NULL;
}

/* The exit status of an exception that nobody caught, told on stderr unless it is an exit. */
static int status_of_error(void)
{
	PyObject *error = PyErr_GetRaisedException();
	PyObject *status = PyObject_CallMethod(guest, "status", "O", error);
	long code = EXIT_FAILURE;

	if (status != NULL && status != Py_None)
		code = PyLong_AsLong(status);
	else {
		PyErr_Clear();
		PyErr_SetRaisedException(Py_NewRef(error));
		PyErr_Print();
	}
	Py_XDECREF(status);
	Py_XDECREF(error);
	return (int)code;
}

/* What Py_FinalizeEx() does for a program: its exit functions, its objects' ends, its output. */
static int finish(PyObject *main_module, int code)
{
	for (size_t i = 0; i < sizeof guest_end / sizeof guest_end[0]; i++) {
		PyObject *done = PyObject_CallNoArgs(guest_end[i]);
		if (done == NULL)
			PyErr_Print();
		else if (done == Py_False)
			code = 120; /* as CPython has it: output could not be written */
		Py_XDECREF(done);
		if (i == 1) {
			_PyModule_Clear(main_module);
			PyGC_Collect();
		}
	}
	return code;
}

static int run_file(const char *path)
{
	PyObject *main_module = PyImport_AddModuleRef("__main__");
	FILE *file = fopen(path, "rb");
	int code = EXIT_SUCCESS;

	if (main_module == NULL) {
		PyErr_Print();
		return EXIT_FAILURE;
	}
	if (file == NULL) {
		fprintf(stderr, "python3: can't open file '%s': [Errno %d] %s\n", path, errno, strerror(errno));
		return 2;
	}
	PyObject *space = PyModule_GetDict(main_module);
	PyObject *done = PyRun_FileEx(file, path, Py_file_input, space, space, 1);
	if (done == NULL)
		code = status_of_error();
	Py_XDECREF(done);
	return finish(main_module, code);
}

/* ---- An evaluation session -------------------------------------------------------------------- */

static PyObject *session_main, *turn; /* of a session that rests */

extern void sqlite3_randomness(int count, void *data);

static int finish_session(void)
{
	int code = status_of_error();

	Py_CLEAR(turn);
	return finish(session_main, code);
}

/* Until the host goes or the code exits. */
static int run_session(void)
{
	session_main = PyImport_AddModuleRef("__main__");
	if (session_main == NULL) {
		PyErr_Print();
		return EXIT_FAILURE;
	}
	turn = PyObject_CallMethod(guest, "session", NULL);
	if (turn == NULL)
		return finish_session();
	guest_rest();
}

__attribute__((export_name("guest.turn"))) void guest_turn(void)
{
	PyObject *done = PyObject_CallNoArgs(turn);

	if (done == NULL)
		exit(finish_session());
	Py_DECREF(done);
}

__attribute__((export_name("guest.renew"))) void guest_renew(void)
{
	PyObject *done = PyObject_CallMethod(guest, "renew", NULL);

	if (done == NULL)
		PyErr_Clear();
	Py_XDECREF(done);
	sqlite3_randomness(0, NULL);
}

/* In a worker that waits for its run: what most runs touch is there by then. */
__attribute__((export_name("guest.rehearse"))) void guest_rehearse(void)
{
	hashes_rehearse();
	PyObject *done = PyObject_CallMethod(guest, "rehearse", NULL);

	if (done == NULL)
		abort();
	Py_DECREF(done);
	hashes_rehearsed();
}

int main(int argc, char **argv)
{
	if (!ready)
		snapshot();
	guest_start();
	if (!hashes_renew(getenv("PYTHONHASHSEED"))) {
		fputs("Fatal Python error: config_init_hash_seed: PYTHONHASHSEED must be \"random\" or an integer in range [0; 4294967295]\n", stderr);
		return EXIT_FAILURE;
	}
	if (guest_has_session()) {
		char *words[] = { argv[0], "" };

		return renew(2, words) ? run_session() : EXIT_FAILURE;
	}
	if (argc < 2) {
		fputs("python3: no code file was given\n", stderr);
		return 2;
	}
	return renew(argc, argv) ? run_file(argv[1]) : EXIT_FAILURE;
}
