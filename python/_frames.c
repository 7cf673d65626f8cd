/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The module with which the package turns Python's frames on; python/python-frames.h tells how they are found. As
 * _ttmem.c it needs only the stable ABI; what it uses beyond is looked for when it is loaded.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>

#include "python/python-frames.h"

static const char *const module_ways[] = {"off", "public", "reader"};

static PyObject *module_init(PyObject *self, PyObject *args)
{
	unsigned long version;
	long code_size;

	if (!PyArg_ParseTuple(args, "kl", &version, &code_size))
		return NULL;
	return PyBool_FromLong(frames_init((uint32_t)version, code_size));
}

static PyObject *module_check(PyObject *self, PyObject *unused)
{
	return PyBool_FromLong(frames_check());
}

static PyObject *module_start(PyObject *self, PyObject *wanted)
{
	enum frames_how how;
	int r;

	for (how = FRAMES_OFF; how <= FRAMES_READER; how++) {
		if (PyUnicode_CompareWithASCIIString(wanted, module_ways[how]) == 0)
			break;
	}
	if (how > FRAMES_READER)
		return PyErr_Format(PyExc_ValueError, "no such way: %R", wanted);
	r = frames_start(how, &how);
	if (r < 0) {
		errno = -r;
		return PyErr_SetFromErrno(PyExc_OSError);
	}
	return PyUnicode_FromString(module_ways[how]);
}

static PyObject *module_stop(PyObject *self, PyObject *unused)
{
	frames_stop();
	Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
	{"init", module_init, METH_VARARGS,
	 "init(version, code_size, /)\n--\n\nWhether there is anything to be had from this "
	 "CPython."},
	{"check", module_check, METH_NOARGS,
	 "check()\n--\n\nWhether memory says the same of the caller's frames as CPython does."},
	{"start", module_start, METH_O,
	 "start(way, /)\n--\n\nOff, public or reader; returns the way that was taken."},
	{"stop", module_stop, METH_NOARGS, "stop()\n--\n\nBefore the interpreter ends."},
	{NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {{0, NULL}};

static struct PyModuleDef module_definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_frames",
	.m_doc = "Python's frames in stacks; import ttmem instead.",
	.m_methods = module_methods,
	.m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__frames(void); /* no header of ours has it */

PyMODINIT_FUNC PyInit__frames(void)
{
	return PyModuleDef_Init(&module_definition);
}
