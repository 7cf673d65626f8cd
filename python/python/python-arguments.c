/* SPDX-License-Identifier: Apache-2.0 */

/* Checking arguments. What is wrong becomes an exception that names the argument. */

#include "python/python-arguments.h"

#include <stdio.h>
#include <string.h>

#include <ttmem/ttmem.h>

static const char *const arguments_types[TTMEM_TYPE_COUNT] = {
#define TTMEM_TYPE(number, name, ...) [number] = #name,
#include <ttmem/types.def>
};

/* ", DRAM, L1" and so on, for the message. */
static const char arguments_type_list[] =
#define TTMEM_TYPE(number, name, ...) ", " #name
#include <ttmem/types.def>
	;

static bool arguments_keyword(const struct arguments_signature *signature, PyObject *name,
			      PyObject *value, PyObject **values)
{
	for (Py_ssize_t i = 0; i < signature->count; i++) {
		if (PyUnicode_CompareWithASCIIString(name, signature->arguments[i]) != 0)
			continue;
		if (values[i]) {
			PyErr_Format(PyExc_TypeError, "%s() got two values for %s", signature->name,
				     signature->arguments[i]);
			return false;
		}
		values[i] = value;
		return true;
	}
	PyErr_Format(PyExc_TypeError, "%s() has no argument %R", signature->name, name);
	return false;
}

bool arguments_gather(const struct arguments_signature *signature, PyObject *const *given,
		      Py_ssize_t count, PyObject *names, PyObject **ret_values)
{
	Py_ssize_t named = names ? PyTuple_Size(names) : 0;

	if (count > signature->count) {
		PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments, not %zd",
			     signature->name, signature->count, count);
		return false;
	}
	for (Py_ssize_t i = 0; i < signature->count; i++)
		ret_values[i] = i < count ? given[i] : NULL;
	for (Py_ssize_t i = 0; i < named; i++) {
		if (!arguments_keyword(signature, PyTuple_GetItem(names, i), given[count + i],
				       ret_values))
			return false;
	}
	for (Py_ssize_t i = 0; i < signature->required; i++) {
		if (!ret_values[i]) {
			PyErr_Format(PyExc_TypeError, "%s() needs %s", signature->name,
				     signature->arguments[i]);
			return false;
		}
	}
	return true;
}

static void arguments_wrong_type(const char *what, const char *allowed, PyObject *value)
{
	PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "__name__");

	if (name)
		PyErr_Format(PyExc_TypeError, "%s must be %s, not %U", what, allowed, name);
	Py_XDECREF(name);
}

bool arguments_number(PyObject *value, const char *what, uint64_t least, uint64_t most,
		      uint64_t *ret_number)
{
	unsigned long long number;
	PyObject *index;

	if (!PyIndex_Check(value)) {
		arguments_wrong_type(what, "an int", value);
		return false;
	}
	index = PyNumber_Index(value);
	if (!index)
		return false;
	number = PyLong_AsUnsignedLongLong(index);
	Py_DECREF(index);
	if (number == (unsigned long long)-1 && PyErr_Occurred()) {
		if (!PyErr_ExceptionMatches(PyExc_OverflowError))
			return false;
		PyErr_Clear();
	} else if (number >= least && number <= most) {
		*ret_number = number;
		return true;
	}
	PyErr_Format(PyExc_ValueError, "%s must be %llu to %llu, not %R", what,
		     (unsigned long long)least, (unsigned long long)most, value);
	return false;
}

bool arguments_device(PyObject *value, uint32_t *ret_device)
{
	uint64_t number;

	if (!arguments_number(value, "device", 0, TTMEM_DEVICE_COUNT - 1, &number))
		return false;
	*ret_device = (uint32_t)number;
	return true;
}

static void arguments_wrong_name(PyObject *value)
{
	const char *names = arguments_type_list + 2, *last = strrchr(names, ',');
	char all[sizeof(arguments_type_list)];

	snprintf(all, sizeof(all), "%.*s or%s", (int)(last - names), names, last + 1);
	PyErr_Format(PyExc_ValueError, "type must be %s, not %R", all, value);
}

bool arguments_type(PyObject *value, bool may_be_any, uint32_t *ret_type)
{
	uint64_t number;

	if (may_be_any && (!value || value == Py_None)) {
		*ret_type = TTMEM_ANY;
		return true;
	}
	if (PyUnicode_Check(value)) {
		for (uint32_t i = 0; i < TTMEM_TYPE_COUNT; i++) {
			if (PyUnicode_CompareWithASCIIString(value, arguments_types[i]) == 0) {
				*ret_type = i;
				return true;
			}
		}
		arguments_wrong_name(value);
		return false;
	}
	if (!PyIndex_Check(value)) {
		arguments_wrong_type(
			"type", may_be_any ? "an int, a str or None" : "an int or a str", value);
		return false;
	}
	if (!arguments_number(value, "type", 0, TTMEM_TYPE_COUNT - 1, &number))
		return false;
	*ret_type = (uint32_t)number;
	return true;
}

bool arguments_text(PyObject *value, const char *what, bool may_be_none, const char **ret_text)
{
	const char *text;
	Py_ssize_t length;

	if (may_be_none && (!value || value == Py_None)) {
		*ret_text = NULL;
		return true;
	}
	if (!PyUnicode_Check(value)) {
		arguments_wrong_type(what, may_be_none ? "a str or None" : "a str", value);
		return false;
	}
	text = PyUnicode_AsUTF8AndSize(value, &length);
	if (!text)
		return false;
	if (strlen(text) != (size_t)length) {
		PyErr_Format(PyExc_ValueError, "%s must not contain a NUL character", what);
		return false;
	}
	*ret_text = text;
	return true;
}

bool arguments_optional(PyObject *value, const char *what, uint64_t most, uint64_t *number)
{
	return !value || value == Py_None || arguments_number(value, what, 0, most, number);
}
