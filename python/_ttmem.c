/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The library's calls for Python, one to one. What the library would only count as rejected is an
 * exception here, whether or not tracking is on: a mistake shall be found where it is made, not only on
 * the machine where somebody looks.
 *
 * Only the stable ABI of CPython 3.10 is used, so that one file serves every later version too; the same
 * source compiles for 3.9. No call of the library blocks, so all of them keep the GIL.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <ttmem/ttmem.h>

#include "python/python-arguments.h"

#define MODULE_SIZE_MAX ((UINT64_C(1) << 40) - 1) /* the library takes no buffer of 1 TiB */
#define MODULE_FACTS 5                            /* numbers per type in device() */

/* Like module_alloc(), for a buffer of which more is known. */
static bool module_alloc_more(PyObject *const *more, struct ttmem_alloc_args *args)
{
	uint64_t space = 0, size_per_bank = 0, banks = 0;

	if (!arguments_optional(more[0], "space", TTMEM_SPACE_COUNT - 1, &space) ||
	    !arguments_optional(more[1], "size_per_bank", MODULE_SIZE_MAX, &size_per_bank) ||
	    !arguments_optional(more[2], "banks", UINT32_MAX, &banks))
		return false;
	args->struct_size = sizeof(*args);
	args->space = (uint32_t)space;
	args->size_per_bank = size_per_bank;
	args->banks = (uint32_t)banks;
	ttmem_alloc_ex(args);
	return true;
}

static PyObject *module_alloc(PyObject *self, PyObject *const *given, Py_ssize_t count,
			      PyObject *names)
{
	static const struct arguments_signature signature = {
		"alloc",
		4,
		8,
		{"device", "type", "address", "size", "name", "space", "size_per_bank", "banks"}};
	PyObject *values[ARGUMENTS_MAX];
	uint64_t address, size;
	uint32_t device, type;
	const char *name;

	if (!arguments_gather(&signature, given, count, names, values) ||
	    !arguments_device(values[0], &device) || !arguments_type(values[1], false, &type) ||
	    !arguments_number(values[2], "address", 0, UINT64_MAX, &address) ||
	    !arguments_number(values[3], "size", 1, MODULE_SIZE_MAX, &size) ||
	    !arguments_text(values[4], "name", true, &name))
		return NULL;
	if (!values[5] && !values[6] && !values[7])
		ttmem_alloc(device, type, address, size, name);
	else if (!module_alloc_more(&values[5], &(struct ttmem_alloc_args){.device = device,
									   .type = type,
									   .address = address,
									   .size = size,
									   .name = name}))
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *module_free(PyObject *self, PyObject *const *given, Py_ssize_t count,
			     PyObject *names)
{
	static const struct arguments_signature signature = {
		"free", 2, 4, {"device", "address", "type", "space"}};
	PyObject *values[ARGUMENTS_MAX];
	uint64_t address, space = 0;
	uint32_t device, type;

	if (!arguments_gather(&signature, given, count, names, values) ||
	    !arguments_device(values[0], &device) ||
	    !arguments_number(values[1], "address", 0, UINT64_MAX, &address) ||
	    !arguments_type(values[2], true, &type) ||
	    !arguments_optional(values[3], "space", TTMEM_SPACE_COUNT - 1, &space))
		return NULL;
	if (!values[3] || values[3] == Py_None)
		ttmem_free(device, type, address);
	else
		ttmem_free_ex(
			&(struct ttmem_free_args){.struct_size = sizeof(struct ttmem_free_args),
						  .device = device,
						  .type = type,
						  .flags = TTMEM_FREE_IN_SPACE,
						  .address = address,
						  .space = (uint32_t)space});
	Py_RETURN_NONE;
}

static PyObject *module_end_space(PyObject *self, PyObject *const *given, Py_ssize_t count,
				  PyObject *names)
{
	static const struct arguments_signature signature = {
		"end_space", 2, 2, {"device", "space"}};
	PyObject *values[ARGUMENTS_MAX];
	uint64_t space;
	uint32_t device;

	if (!arguments_gather(&signature, given, count, names, values) ||
	    !arguments_device(values[0], &device) ||
	    !arguments_number(values[1], "space", 0, TTMEM_SPACE_COUNT - 1, &space))
		return NULL;
	return PyLong_FromUnsignedLongLong(ttmem_end_space(device, (uint32_t)space));
}

static PyObject *module_alloc_failed(PyObject *self, PyObject *const *given, Py_ssize_t count,
				     PyObject *names)
{
	static const struct arguments_signature signature = {
		"alloc_failed", 3, 4, {"device", "type", "size", "largest_free"}};
	PyObject *values[ARGUMENTS_MAX];
	uint64_t size, largest = TTMEM_UNKNOWN;
	uint32_t device, type;

	if (!arguments_gather(&signature, given, count, names, values) ||
	    !arguments_device(values[0], &device) || !arguments_type(values[1], false, &type) ||
	    !arguments_number(values[2], "size", 0, UINT64_MAX, &size))
		return NULL;
	if (values[3] && values[3] != Py_None &&
	    !arguments_number(values[3], "largest_free", 0, UINT64_MAX - 1, &largest))
		return NULL;
	ttmem_alloc_failed(device, type, size, largest);
	Py_RETURN_NONE;
}

/* Device and type of the calls that ask for figures. */
static bool module_place(const struct arguments_signature *signature, PyObject *const *given,
			 Py_ssize_t count, PyObject *names, uint32_t ret_place[2])
{
	PyObject *values[ARGUMENTS_MAX];

	return arguments_gather(signature, given, count, names, values) &&
	       arguments_device(values[0], &ret_place[0]) &&
	       arguments_type(values[1], true, &ret_place[1]);
}

static bool module_ask(const struct arguments_signature *signature, PyObject *const *given,
		       Py_ssize_t count, PyObject *names, struct ttmem_stats *ret_stats)
{
	struct ttmem_stats stats = {0};
	uint32_t place[2];
	int r;

	if (!module_place(signature, given, count, names, place))
		return false;
	r = ttmem_stats(place[0], place[1], &stats);
	/* Without tracking there is nothing: all 0. */
	if (r < 0 && r != -ENODATA) {
		errno = -r;
		PyErr_SetFromErrno(PyExc_OSError);
		return false;
	}
	*ret_stats = stats;
	return true;
}

static PyObject *module_memory_allocated(PyObject *self, PyObject *const *given, Py_ssize_t count,
					 PyObject *names)
{
	static const struct arguments_signature signature = {
		"memory_allocated", 1, 2, {"device", "type"}};
	struct ttmem_stats stats;

	if (!module_ask(&signature, given, count, names, &stats))
		return NULL;
	return PyLong_FromUnsignedLongLong(stats.bytes);
}

static PyObject *module_max_memory_allocated(PyObject *self, PyObject *const *given,
					     Py_ssize_t count, PyObject *names)
{
	static const struct arguments_signature signature = {
		"max_memory_allocated", 1, 2, {"device", "type"}};
	struct ttmem_stats stats;

	if (!module_ask(&signature, given, count, names, &stats))
		return NULL;
	return PyLong_FromUnsignedLongLong(stats.peak_bytes);
}

static PyObject *module_stats(PyObject *self, PyObject *const *given, Py_ssize_t count,
			      PyObject *names)
{
	static const struct arguments_signature signature = {
		"memory_stats", 1, 2, {"device", "type"}};
	struct ttmem_stats stats;

	if (!module_ask(&signature, given, count, names, &stats))
		return NULL;
	return Py_BuildValue("KKKKK", (unsigned long long)stats.bytes,
			     (unsigned long long)stats.buffers,
			     (unsigned long long)stats.peak_bytes, (unsigned long long)stats.allocs,
			     (unsigned long long)stats.frees);
}

static PyObject *module_freeze(PyObject *self, PyObject *const *given, Py_ssize_t count,
			       PyObject *names)
{
	static const struct arguments_signature signature = {"freeze", 0, 1, {"buffers"}};
	PyObject *values[ARGUMENTS_MAX];
	uint64_t buffers = 4096;

	if (!arguments_gather(&signature, given, count, names, values) ||
	    (values[0] && !arguments_number(values[0], "buffers", 0, UINT64_MAX, &buffers)))
		return NULL;
	return PyBool_FromLong(ttmem_freeze(buffers) == 0);
}

static PyObject *module_reset_peak(PyObject *self, PyObject *const *given, Py_ssize_t count,
				   PyObject *names)
{
	static const struct arguments_signature signature = {
		"reset_peak", 1, 2, {"device", "type"}};
	uint32_t place[2];

	if (!module_place(&signature, given, count, names, place))
		return NULL;
	ttmem_reset_peak(place[0], place[1]);
	Py_RETURN_NONE;
}

/* @memory: a tuple of all facts of all types in the order of the struct; ttmem.device() makes it. */
static bool module_facts(PyObject *memory, struct ttmem_device_args *args)
{
	uint64_t numbers[TTMEM_TYPE_COUNT * MODULE_FACTS];
	Py_ssize_t count = TTMEM_TYPE_COUNT * MODULE_FACTS;

	if (!PyTuple_Check(memory) || PyTuple_Size(memory) != count) {
		PyErr_Format(PyExc_TypeError, "memory must be a tuple of %zd numbers", count);
		return false;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		uint64_t most = i % MODULE_FACTS < 3 ? UINT64_MAX : UINT32_MAX;

		if (!arguments_number(PyTuple_GetItem(memory, i), "memory", 0, most, &numbers[i]))
			return false;
	}
	for (uint32_t i = 0; i < TTMEM_TYPE_COUNT; i++) {
		const uint64_t *facts = &numbers[i * MODULE_FACTS];

		args->memory[i] = (struct ttmem_memory_facts){
			.capacity = facts[0],
			.bank_base = facts[1],
			.bank_size = facts[2],
			.banks = (uint32_t)facts[3],
			.alignment = (uint32_t)facts[4],
		};
	}
	return true;
}

static PyObject *module_declare(PyObject *self, PyObject *const *given, Py_ssize_t count,
				PyObject *names)
{
	static const struct arguments_signature signature = {
		.name = "device",
		.required = 8,
		.count = 8,
		.arguments = {"device", "unique_id", "arch", "card", "remote", "l1_per_core",
			      "cores", "memory"},
	};
	struct ttmem_device_args args = {.struct_size = sizeof(args)};
	PyObject *values[ARGUMENTS_MAX];
	uint64_t l1_per_core, cores;
	int remote;

	if (!arguments_gather(&signature, given, count, names, values) ||
	    !arguments_device(values[0], &args.device) ||
	    !arguments_number(values[1], "unique_id", 0, UINT64_MAX, &args.unique_id) ||
	    !arguments_text(values[2], "arch", true, &args.arch) ||
	    !arguments_text(values[3], "card", true, &args.card) ||
	    !arguments_number(values[5], "l1_per_core", 0, UINT32_MAX, &l1_per_core) ||
	    !arguments_number(values[6], "cores", 0, UINT32_MAX, &cores) ||
	    !module_facts(values[7], &args))
		return NULL;
	remote = PyObject_IsTrue(values[4]);
	if (remote < 0)
		return NULL;
	args.remote = (uint32_t)remote;
	args.l1_per_core = (uint32_t)l1_per_core;
	args.cores = (uint32_t)cores;
	ttmem_device(&args);
	Py_RETURN_NONE;
}

static PyObject *module_device_close(PyObject *self, PyObject *value)
{
	uint32_t device;

	if (!arguments_device(value, &device))
		return NULL;
	ttmem_device_close(device);
	Py_RETURN_NONE;
}

static PyObject *module_say(PyObject *value, void (*call)(const char *name))
{
	const char *name;

	if (!arguments_text(value, "name", false, &name))
		return NULL;
	call(name);
	Py_RETURN_NONE;
}

static PyObject *module_phase_push(PyObject *self, PyObject *value)
{
	return module_say(value, ttmem_phase_push);
}

static PyObject *module_phase_pop(PyObject *self, PyObject *unused)
{
	ttmem_phase_pop();
	Py_RETURN_NONE;
}

static PyObject *module_phase_process(PyObject *self, PyObject *value)
{
	return module_say(value, ttmem_phase_process);
}

static PyObject *module_skip_frames(PyObject *self, PyObject *value)
{
	return module_say(value, ttmem_skip_frames);
}

static PyObject *module_mark(PyObject *self, PyObject *value)
{
	return module_say(value, ttmem_mark);
}

static PyObject *module_enabled(PyObject *self, PyObject *unused)
{
	return PyBool_FromLong(ttmem_enabled());
}

static PyObject *module_version(PyObject *self, PyObject *unused)
{
	return PyUnicode_FromString(ttmem_version());
}

#define MODULE_NAMED(f) (PyCFunction)(void (*)(void))(f), METH_FASTCALL | METH_KEYWORDS

static PyMethodDef module_methods[] = {
	{"alloc", MODULE_NAMED(module_alloc),
	 "alloc(device, type, address, size, name=None, space=0, size_per_bank=0, banks=0)\n--\n\n"
	 "A buffer was allocated. The type is a constant such as ttmem.DRAM, or its name."},
	{"free", MODULE_NAMED(module_free),
	 "free(device, address, type=None, space=None)\n--\n\n"
	 "A buffer was freed. Without a type, the one that lives at the address; without a space, "
	 "the "
	 "one in space 0, or the only one."},
	{"end_space", MODULE_NAMED(module_end_space),
	 "end_space(device, space)\n--\n\n"
	 "An allocator was closed: frees every buffer in its space and returns how many there "
	 "were."},
	{"alloc_failed", MODULE_NAMED(module_alloc_failed),
	 "alloc_failed(device, type, size, largest_free=None)\n--\n\n"
	 "An allocation failed: the size asked for, and the largest free block where known."},
	{"memory_allocated", MODULE_NAMED(module_memory_allocated),
	 "memory_allocated(device, type=None)\n--\n\n"
	 "Bytes that this process holds on a device, of one type or of all."},
	{"max_memory_allocated", MODULE_NAMED(module_max_memory_allocated),
	 "max_memory_allocated(device, type=None)\n--\n\n"
	 "The most bytes of a type that this process has held; of all types the sum of their "
	 "peaks."},
	{"_stats", MODULE_NAMED(module_stats),
	 "_stats(device, type=None)\n--\n\nThe numbers of ttmem.memory_stats()."},
	{"freeze", MODULE_NAMED(module_freeze),
	 "freeze(buffers=4096)\n--\n\n"
	 "Before this process forbids itself system calls: reserve room for that many more\n"
	 "buffers on each device, then make no system call any more. False: less room, or\n"
	 "tracking is off."},
	{"reset_peak", MODULE_NAMED(module_reset_peak),
	 "reset_peak(device, type=None)\n--\n\n"
	 "Let the peak start again from what is allocated now, of one type or of all."},
	{"_device", MODULE_NAMED(module_declare), "What ttmem.device() calls."},
	{"device_close", module_device_close, METH_O,
	 "device_close(device, /)\n--\n\nThe application has closed a device."},
	{"_phase_push", module_phase_push, METH_O, "What ttmem.phase() calls."},
	{"_phase_pop", module_phase_pop, METH_NOARGS, "What ttmem.phase() calls."},
	{"process_phase", module_phase_process, METH_O,
	 "process_phase(name, /)\n--\n\n"
	 "The phase of every thread that has none of its own; \"\" ends it."},
	{"skip_frames", module_skip_frames, METH_O,
	 "skip_frames(patterns, /)\n--\n\n"
	 "Functions, files and libraries that only pass allocations on, separated by commas: they "
	 "do "
	 "not stand for a stack."},
	{"mark", module_mark, METH_O, "mark(name, /)\n--\n\nA moment with a name."},
	{"enabled", module_enabled, METH_NOARGS,
	 "enabled()\n--\n\nWhether events are being recorded."},
	{"version", module_version, METH_NOARGS,
	 "version()\n--\n\nThe version of libttmem, such as \"0.2.0\"."},
	{NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {{0, NULL}};

static struct PyModuleDef module_definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_ttmem",
	.m_doc = "The calls of libttmem; import ttmem instead.",
	.m_methods = module_methods,
	.m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__ttmem(void); /* no header of ours has it */

PyMODINIT_FUNC PyInit__ttmem(void)
{
	return PyModuleDef_Init(&module_definition);
}
