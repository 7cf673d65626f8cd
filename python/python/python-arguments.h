/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Arguments of the extension's functions: by position and by name, checked, as what the library takes. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#define ARGUMENTS_MAX 8

/* A function's name and its arguments, of which the first ones must be there. */
struct arguments_signature {
	const char *name;
	Py_ssize_t required;
	Py_ssize_t count;
	const char *arguments[ARGUMENTS_MAX];
};

/* Sorts what was given by position and by name; what was not given is NULL. All are borrowed. */
bool arguments_gather(const struct arguments_signature *signature, PyObject *const *given,
		      Py_ssize_t count, PyObject *names, PyObject **ret_values);

/* An int, or what stands for one (numpy's numbers do). */
bool arguments_number(PyObject *value, const char *what, uint64_t least, uint64_t most,
		      uint64_t *ret_number);

/* @value: NULL and None leave the number as it is. */
bool arguments_optional(PyObject *value, const char *what, uint64_t most, uint64_t *number);

bool arguments_device(PyObject *value, uint32_t *ret_device);

/* @value: a number or a name; where @may_be_any, also None or NULL. */
bool arguments_type(PyObject *value, bool may_be_any, uint32_t *ret_type);

/* The text lives as long as @value. None and NULL are NULL where @may_be_none. */
bool arguments_text(PyObject *value, const char *what, bool may_be_none, const char **ret_text);
