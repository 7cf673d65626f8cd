/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A typical C++ binding: a Python extension that allocates, calls back, has threads of its own and
 * outlives the interpreter. tests/integration/python/test_python_stacks.py builds it, in several ways.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <atomic>
#include <string>
#include <thread>

#include <ttmem/ttmem.h>

#define KEEP() __asm__ volatile("")

static std::atomic<unsigned long> step_address{0x1000};

__attribute__((noinline)) static void place(const char *name)
{
	ttmem_alloc(0, TTMEM_DRAM, step_address += 0x1000, 64, name); /* place */
	KEEP();
}

namespace model
{
template <typename T> struct Layer {
	__attribute__((noinline)) void load(T name)
	{
		place(name); /* load */
		KEEP();
	}
};
} // namespace model

static PyObject *step_take(PyObject *, PyObject *name)
{
	model::Layer<const char *>().load(PyUnicode_AsUTF8(name)); /* take */
	KEEP();
	Py_RETURN_NONE;
}

static PyObject *step_released(PyObject *, PyObject *name)
{
	const char *text = PyUnicode_AsUTF8(name);

	Py_BEGIN_ALLOW_THREADS;
	place(text); /* released */
	Py_END_ALLOW_THREADS;
	KEEP();
	Py_RETURN_NONE;
}

/* As a destructor does while an exception is in flight. */
static PyObject *step_fail(PyObject *, PyObject *name)
{
	PyErr_SetString(PyExc_KeyError, "this");
	place(PyUnicode_AsUTF8(name));
	KEEP();
	return nullptr;
}

static PyObject *step_call(PyObject *, PyObject *function)
{
	PyObject *result = PyObject_CallNoArgs(function); /* call */

	KEEP();
	return result;
}

/* A thread that Python knows nothing about. */
static PyObject *step_bare(PyObject *, PyObject *name)
{
	std::thread thread(place, PyUnicode_AsUTF8(name));

	Py_BEGIN_ALLOW_THREADS;
	thread.join();
	Py_END_ALLOW_THREADS;
	Py_RETURN_NONE;
}

static void step_enter(PyObject *function)
{
	PyGILState_STATE state = PyGILState_Ensure();

	Py_XDECREF(PyObject_CallNoArgs(function)); /* enter */
	PyGILState_Release(state);
	KEEP();
}

/* A thread that enters Python for a callback. */
static PyObject *step_callback(PyObject *, PyObject *function)
{
	std::thread thread(step_enter, function);

	Py_BEGIN_ALLOW_THREADS;
	thread.join();
	Py_END_ALLOW_THREADS;
	Py_RETURN_NONE;
}

/* An object that allocates when it is destroyed. */
static void step_dropped(PyObject *capsule)
{
	place(PyCapsule_GetName(capsule));
	KEEP();
}

static PyObject *step_holder(PyObject *, PyObject *name)
{
	/* The name must live as long as the capsule; this is a test. */
	return PyCapsule_New(&step_address, strdup(PyUnicode_AsUTF8(name)), step_dropped);
}

struct Last {
	std::string name;
	~Last()
	{
		if (!name.empty())
			place(name.c_str());
	}
};

static Last step_last;

/* After the interpreter has ended, among the C++ destructors. */
static PyObject *step_at_exit(PyObject *, PyObject *name)
{
	step_last.name = PyUnicode_AsUTF8(name);
	Py_RETURN_NONE;
}

static PyObject *step_subinterpreter(PyObject *, PyObject *code)
{
	const char *text = PyUnicode_AsUTF8(code);
	PyThreadState *before = PyThreadState_Get();
	PyThreadState *other = Py_NewInterpreter();
	int r = other ? PyRun_SimpleString(text) : -1;

	if (other)
		Py_EndInterpreter(other);
	PyThreadState_Swap(before);
	if (r != 0)
		return PyErr_Format(PyExc_RuntimeError, "the code failed");
	Py_RETURN_NONE;
}

/* Events without the GIL until the process ends. */
static PyObject *step_churn(PyObject *, PyObject *device)
{
	uint32_t number = (uint32_t)PyLong_AsUnsignedLong(device);

	Py_BEGIN_ALLOW_THREADS;
	for (;;) {
		ttmem_alloc(number, TTMEM_L1, 64, 64, nullptr);
		ttmem_free(number, TTMEM_L1, 64);
	}
	Py_END_ALLOW_THREADS;
	Py_RETURN_NONE;
}

static PyMethodDef step_methods[] = {
	{"take", step_take, METH_O, nullptr},
	{"released", step_released, METH_O, nullptr},
	{"fail", step_fail, METH_O, nullptr},
	{"call", step_call, METH_O, nullptr},
	{"bare", step_bare, METH_O, nullptr},
	{"callback", step_callback, METH_O, nullptr},
	{"holder", step_holder, METH_O, nullptr},
	{"at_exit", step_at_exit, METH_O, nullptr},
	{"subinterpreter", step_subinterpreter, METH_O, nullptr},
	{"churn", step_churn, METH_O, nullptr},
	{nullptr, nullptr, 0, nullptr},
};

static struct PyModuleDef step_module = {
	PyModuleDef_HEAD_INIT,
	"step",
	nullptr,
	-1,
	step_methods,
	nullptr,
	nullptr,
	nullptr,
	nullptr,
};

PyMODINIT_FUNC PyInit_step()
{
	return PyModule_Create(&step_module);
}
