/* SPDX-License-Identifier: MIT */
/*
 * session.c - module _control: what the driver of packs/python_driver.py has of the machine here.
 *
 * An interrupt is a signal as CPython knows it: its mark, the mark that there is one at all, and the bit
 * that has the interpreter look.
 */
#include <Python.h>
#include <internal/pycore_ceval.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#include "guest.h"
#include "session.h"
#include <signal.h>
#include <stdlib.h>

static PyObject *control_read(PyObject *self, PyObject *args)
{
	Py_ssize_t size;

	(void)self;
	if (!PyArg_ParseTuple(args, "n", &size) || size < 0)
		return NULL;
	PyObject *data = PyBytes_FromStringAndSize(NULL, size);
	if (data == NULL)
		return NULL;
	size_t n = guest_control_read(PyBytes_AS_STRING(data), (size_t)size);
	return _PyBytes_Resize(&data, (Py_ssize_t)n) < 0 ? NULL : data;
}

static PyObject *control_write(PyObject *self, PyObject *data)
{
	char *text;
	Py_ssize_t len;

	(void)self;
	if (PyBytes_AsStringAndSize(data, &text, &len) < 0)
		return NULL;
	guest_control_write(text, (size_t)len);
	Py_RETURN_NONE;
}

static PyObject *control_waiting(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	return PyBool_FromLong(guest_control_waiting());
}

/* As select.select() waits: handlers of signals run meanwhile, and may raise. */
static PyObject *control_wait(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	while (!guest_control_wait())
		if (PyErr_CheckSignals() < 0)
			return NULL;
	Py_RETURN_NONE;
}

static PyObject *control_input(PyObject *self, PyObject *path)
{
	const char *text = PyUnicode_AsUTF8(path);

	(void)self;
	if (text == NULL)
		return NULL;
	guest_input_file(text);
	Py_RETURN_NONE;
}

static PyObject *control_listen(PyObject *self, PyObject *none)
{
	const guest_bell_word words[] = {
		{ &_PyRuntime.signals.handlers[SIGINT].tripped, 1 },
		{ &_PyRuntime.signals.is_tripped, 1 },
		{ &_PyThreadState_GET()->eval_breaker, _PY_SIGNALS_PENDING_BIT },
	};

	(void)self, (void)none;
	guest_bell(words, sizeof words / sizeof words[0]);
	Py_RETURN_NONE;
}

PyObject *session_module(void)
{
	static PyMethodDef functions[] = {
		{ "read", control_read, METH_VARARGS, NULL },
		{ "write", control_write, METH_O, NULL },
		{ "waiting", control_waiting, METH_NOARGS, NULL },
		{ "wait", control_wait, METH_NOARGS, NULL },
		{ "input", control_input, METH_O, NULL },
		{ "listen", control_listen, METH_NOARGS, NULL },
		{ NULL, NULL, 0, NULL },
	};
	static PyModuleDef definition = { PyModuleDef_HEAD_INIT, "_control", NULL, -1, functions, NULL, NULL, NULL, NULL };

	return PyModule_Create(&definition);
}
