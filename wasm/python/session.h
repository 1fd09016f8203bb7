/* SPDX-License-Identifier: MIT */
#ifndef GUEST_PYTHON_SESSION_H
#define GUEST_PYTHON_SESSION_H

#include <Python.h>

/* Module _control, for Python's table of built-in modules. */
PyObject *session_module(void);

#endif /* GUEST_PYTHON_SESSION_H */
