/* SPDX-License-Identifier: Apache-2.0 */

/* Who may look, pins, and the two ways to frames; the header tells the rest. */

#include "python/python-frames.h"

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <time.h>

#include <ttmem/provider.h>

#include "python/python-layout.h"

#define FRAMES_PINS 8192u     /* places of the table, a power of two */
#define FRAMES_PINS_MAX 4096u /* code objects that are kept alive */
#define FRAMES_CHECK_MAX 256u /* frames that the self-check compares */
#define FRAMES_STOP_NS \
	100000000 /* to wait for threads that are inside; a forked child's never end */

#define FRAMES_K0 UINT64_C(0x9e3779b97f4a7c15)

/* Functions that CPython exports and its stable ABI has not. */
struct frames_functions {
	PyThreadState *(*current)(void); /* of whoever has the GIL; since 3.12 of this thread */
	PyInterpreterState *(*head)(void);
	PyInterpreterState *(*main)(void);
	PyFrameObject *(*back)(PyFrameObject *frame);
};

static struct frames_functions frames_call;
static const struct layout *frames_layout;
static enum frames_how frames_now;
static bool frames_is_nested; /* each frame is an entry: Python before 3.11 */
static PyInterpreterState *frames_main;

static uint32_t frames_released; /* threads without the GIL that are looking */
static uint32_t frames_stopped;
static bool frames_has_end; /* CPython will call frames_end() */

static const void *frames_pins[FRAMES_PINS];
static uint32_t frames_pin_count; /* under the GIL */

static inline uint64_t frames_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * FRAMES_K0;
	return hash ^ hash >> 32;
}

/* Where @code is in the table, or could be. Threads without the GIL may ask. */
static inline const void **frames_pin_place(const void *code)
{
	uint32_t place = (uint32_t)((uintptr_t)code * FRAMES_K0 >> 32);

	for (;; place++) {
		const void **pin = &frames_pins[place % FRAMES_PINS];
		const void *there = __atomic_load_n(pin, __ATOMIC_RELAXED);

		if (there == code || !there)
			return pin;
	}
}

/* With the GIL: keeps @code alive for good. False = there are too many already. */
static bool frames_pin(const void *code, const void **pin)
{
	if (frames_pin_count >= FRAMES_PINS_MAX)
		return false;
	frames_pin_count++;
	Py_IncRef((PyObject *)(uintptr_t)code);
	__atomic_store_n(pin, code, __ATOMIC_RELAXED);
	return true;
}

static inline bool frames_is_pinned(const void *code, bool has_gil)
{
	const void **pin = frames_pin_place(code);

	return *pin || (has_gil && frames_pin(code, pin));
}

/* Never one of the answers that mean something else. */
static inline uint64_t frames_number(uint64_t hash)
{
	return hash > TTMEM_FRAMES_OFF ? hash : FRAMES_K0;
}

static uint64_t frames_read_look(const PyThreadState *thread, uint32_t depth, bool has_gil)
{
	struct layout_frame frame;
	struct layout_walk walk;
	uint64_t hash = 0;
	uint32_t n;

	layout_begin(&walk, frames_layout, thread);
	for (n = 0; n < depth && layout_next(&walk, &frame); n++) {
		hash = frames_mix(hash, (uintptr_t)frame.at);
		if (!frames_is_pinned(frame.code, has_gil)) {
			hash = frames_mix(hash, (uintptr_t)frame.code);
			hash = frames_mix(hash, layout_hash(frames_layout, frame.code));
		}
	}
	return n > 0 ? frames_number(frames_mix(hash, n)) : TTMEM_FRAMES_NONE;
}

static void frames_read_tell(const PyThreadState *thread, uint32_t depth,
			     struct ttmem_frames *frames)
{
	char function[LAYOUT_TEXT_SIZE], file[LAYOUT_TEXT_SIZE];
	struct layout_frame frame;
	struct layout_walk walk;

	layout_begin(&walk, frames_layout, thread);
	for (uint32_t n = 0; n < depth && layout_next(&walk, &frame); n++) {
		struct ttmem_frame told = {
			.struct_size = sizeof(told),
			.flags = frame.place ? TTMEM_FRAME_ENTRY : 0,
			.line = layout_line(frames_layout, &frame),
			.function = function,
			.file = file,
			.place = (uintptr_t)frame.place,
		};

		(void)layout_function(frames_layout, frame.code, function); /* it ends with a NUL */
		(void)layout_file(frames_layout, frame.code, file);         /* likewise */
		ttmem_frames_add(frames, &told);
	}
}

/* The next frame further out. Takes one reference and gives one; NULL = that was the last. */
static PyFrameObject *frames_back(PyFrameObject *frame)
{
	PyFrameObject *back = frames_call.back(frame);

	Py_DecRef((PyObject *)frame);
	return back;
}

/* Borrowed: the frame holds it. */
static PyObject *frames_code(PyFrameObject *frame)
{
	PyObject *code = (PyObject *)PyFrame_GetCode(frame);

	Py_DecRef(code);
	return code;
}

static uint64_t frames_public_look(PyThreadState *thread, uint32_t depth)
{
	static uint64_t unlike; /* under the GIL: stacks that cannot be known again */
	PyFrameObject *frame = PyThreadState_GetFrame(thread);
	uint64_t hash = 0;
	uint32_t n;

	for (n = 0; n < depth && frame; n++) {
		PyObject *code = frames_code(frame);

		hash = frames_mix(hash, (uintptr_t)code);
		hash = frames_mix(hash, (uint64_t)PyFrame_GetLineNumber(frame));
		if (!frames_is_pinned(code, true))
			hash = frames_mix(hash, ++unlike);
		frame = frames_back(frame);
	}
	Py_XDECREF(frame);
	return n > 0 ? frames_number(frames_mix(hash, n)) : TTMEM_FRAMES_NONE;
}

/* @ret_object holds the text. NULL if it cannot be written as UTF-8. */
static const char *frames_attribute(PyObject *code, const char *name, PyObject **ret_object)
{
	const char *text;

	*ret_object = PyObject_GetAttrString(code, name);
	text = *ret_object ? PyUnicode_AsUTF8AndSize(*ret_object, NULL) : NULL;
	if (!text)
		PyErr_Clear();
	return text;
}

static void frames_public_one(PyFrameObject *frame, bool is_entry, struct ttmem_frames *frames)
{
	PyObject *code = frames_code(frame), *function, *file;
	int line = PyFrame_GetLineNumber(frame);
	struct ttmem_frame told = {
		.struct_size = sizeof(told),
		.flags = is_entry ? TTMEM_FRAME_ENTRY : 0,
		.line = line > 0 ? (uint32_t)line : 0,
		.function = frames_attribute(code, "co_name", &function),
		.file = frames_attribute(code, "co_filename", &file),
	};

	ttmem_frames_add(frames, &told);
	Py_XDECREF(function);
	Py_XDECREF(file);
}

static void frames_public_tell(PyThreadState *thread, uint32_t depth, struct ttmem_frames *frames)
{
	PyFrameObject *frame = PyThreadState_GetFrame(thread);

	for (uint32_t n = 0; n < depth && frame; n++) {
		PyFrameObject *back = frames_call.back(frame);

		frames_public_one(frame, frames_is_nested || !back, frames);
		Py_DecRef((PyObject *)frame);
		frame = back;
	}
	Py_XDECREF(frame);
}

/* Whoever frees the states of threads without the GIL waits for those that are inside, or they see it. */
static bool frames_enter_released(void)
{
	__atomic_fetch_add(&frames_released, 1, __ATOMIC_SEQ_CST); /* pairs with frames_stop() */
	if (!__atomic_load_n(&frames_stopped, __ATOMIC_SEQ_CST))
		return true;
	__atomic_fetch_sub(&frames_released, 1, __ATOMIC_SEQ_CST);
	return false;
}

static void frames_leave_released(void)
{
	__atomic_fetch_sub(&frames_released, 1, __ATOMIC_SEQ_CST);
}

static uint64_t frames_look(uint32_t depth)
{
	PyThreadState *thread;
	uint64_t found;

	if (!Py_IsInitialized())
		return TTMEM_FRAMES_NONE;
	thread = PyGILState_GetThisThreadState();
	if (!thread)
		return TTMEM_FRAMES_NONE;
	/* The newest interpreter comes first: another than the main one, and threads may be anybody's. */
	if (frames_now == FRAMES_OFF || frames_call.head() != frames_main)
		return TTMEM_FRAMES_OFF;
	if (frames_call.current() == thread) {
		if (frames_now == FRAMES_READER)
			return frames_read_look(thread, depth, true);
		return frames_public_look(thread, depth);
	}
	if (frames_now != FRAMES_READER || !frames_enter_released())
		return TTMEM_FRAMES_LAST;
	found = frames_read_look(thread, depth, false);
	frames_leave_released();
	return found;
}

/* Right after frames_look() found some. */
static void frames_tell(uint32_t depth, struct ttmem_frames *frames)
{
	PyThreadState *thread = PyGILState_GetThisThreadState();
	PyObject *type, *value, *trace;

	if (frames_call.current() == thread && frames_now == FRAMES_PUBLIC) {
		/* The application may be in the middle of an exception. */
		PyErr_Fetch(&type, &value, &trace);
		frames_public_tell(thread, depth, frames);
		PyErr_Restore(type, value, trace);
	} else if (frames_call.current() == thread) {
		frames_read_tell(thread, depth, frames);
	} else if (frames_enter_released()) {
		frames_read_tell(thread, depth, frames);
		frames_leave_released();
	}
}

static struct ttmem_provider frames_provider = {
	.struct_size = sizeof(frames_provider),
	.look = frames_look,
	.tell = frames_tell,
};

/* The code of the interpreter's loop, as far as the file says how long it is. */
static void frames_find_loop(void)
{
	void *loop = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
	void *symbol = NULL;
	Dl_info info;

	if (!loop || dladdr1(loop, &info, &symbol, RTLD_DL_SYMENT) == 0 || !symbol)
		return;
	frames_provider.loop_from = (uintptr_t)loop;
	frames_provider.loop_to = (uintptr_t)loop + ((const ElfW(Sym) *)symbol)->st_size;
}

static void *frames_symbol(const char *name, const char *older)
{
	void *symbol = dlsym(RTLD_DEFAULT, name);

	return symbol || !older ? symbol : dlsym(RTLD_DEFAULT, older);
}

bool frames_init(uint32_t version, long code_size)
{
	void *current = frames_symbol("PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
	void *head = frames_symbol("PyInterpreterState_Head", NULL);
	void *first = frames_symbol("PyInterpreterState_Main", NULL);
	void *back = frames_symbol("PyFrame_GetBack", NULL);

	if (!current || !head || !first || !back)
		return false;
	/* What POSIX wants of pointers to functions, and C does not promise. */
	memcpy(&frames_call.current, &current, sizeof(current));
	memcpy(&frames_call.head, &head, sizeof(head));
	memcpy(&frames_call.main, &first, sizeof(first));
	memcpy(&frames_call.back, &back, sizeof(back));
	frames_main = frames_call.main();
	if (PyInterpreterState_Get() != frames_main)
		return false;
	frames_is_nested = version < 0x030b0000;
	frames_layout = layout_find(version);
	if (frames_layout && frames_layout->code_begin != code_size)
		frames_layout = NULL;
	frames_find_loop();
	return true;
}

static bool frames_is_same_text(const char *text, size_t length, PyObject *code, const char *name)
{
	PyObject *object;
	const char *other = frames_attribute(code, name, &object);
	bool same = other && strlen(other) == length && memcmp(other, text, length) == 0;

	Py_XDECREF(object);
	return same;
}

static bool frames_is_same(const struct layout_frame *read, PyFrameObject *frame)
{
	PyObject *code = frames_code(frame);
	char text[LAYOUT_TEXT_SIZE];
	int line = PyFrame_GetLineNumber(frame);
	size_t length;

	/* First that it is the object at all, before anything in it is believed. */
	if (read->code != code)
		return false;
	if (layout_line(frames_layout, read) != (line > 0 ? (uint32_t)line : 0))
		return false;
	length = layout_function(frames_layout, code, text);
	if (!frames_is_same_text(text, length, code, "co_name"))
		return false;
	length = layout_file(frames_layout, code, text);
	return frames_is_same_text(text, length, code, "co_filename");
}

bool frames_check(void)
{
	PyThreadState *thread = PyGILState_GetThisThreadState();
	PyFrameObject *frame = PyThreadState_GetFrame(thread);
	struct layout_frame read = {0};
	struct layout_walk walk;
	const char *below = (const char *)&walk;
	bool same = frames_layout && frames_call.current() == thread;

	if (same)
		layout_begin(&walk, frames_layout, thread);
	for (uint32_t n = 0; same && frame && n < FRAMES_CHECK_MAX; n++) {
		same = layout_next(&walk, &read) && frames_is_same(&read, frame);
		/* Runs of the interpreter lie on this very stack, the outer ones above the inner. */
		if (read.place) {
			same = same && (const char *)read.place > below;
			below = read.place;
		}
		frame = frames_back(frame);
	}
	/* The outermost is an entry. */
	same = same && (frame || (read.place && !layout_next(&walk, &read)));
	Py_XDECREF(frame);
	return same;
}

/* After everything else: whoever calls now has no Python any more. */
static void frames_end(void)
{
	/* Whoever starts the interpreter again needs another end, and its objects may lie anywhere. */
	frames_has_end = false;
	memset(frames_pins, 0, sizeof(frames_pins));
	frames_pin_count = 0;
	(void)ttmem_provider(NULL); /* cannot fail */
}

int frames_start(enum frames_how wanted, enum frames_how *ret_how)
{
	int r;

	frames_now = wanted == FRAMES_READER && !frames_layout ? FRAMES_PUBLIC : wanted;
	__atomic_store_n(&frames_stopped, 0, __ATOMIC_SEQ_CST);
	r = ttmem_provider(&frames_provider);
	if (r < 0)
		return r;
	/* Without a place in CPython's list it is look() that sees the end. */
	if (!frames_has_end)
		frames_has_end = Py_AtExit(frames_end) == 0;
	*ret_how = frames_now;
	return 0;
}

static uint64_t frames_clock(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void frames_stop(void)
{
	uint64_t until = frames_clock() + FRAMES_STOP_NS;

	__atomic_store_n(&frames_stopped, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&frames_released, __ATOMIC_SEQ_CST) && frames_clock() < until)
		(void)sched_yield(); /* cannot fail */
}
