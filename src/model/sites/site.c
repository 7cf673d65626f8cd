/* SPDX-License-Identifier: Apache-2.0 */

/* Which code belongs to the application, and which only passes its calls on. */

#include "model/sites/site.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "model/sites/frame-patterns.h"

#define SITE_MODULE 512u /* longer ones are not known anyway */

/* How well a frame stands for its stack. Of equal ones the innermost does. */
enum site_rank {
	SITE_NEVER = 0,
	SITE_RUNTIME, /* of a language, a binding, tt-metal, or what runs the program */
	SITE_NAMED,   /* an allocator of the application that someone named */
	SITE_ADDRESS, /* the application's, without a name */
	SITE_FUNCTION,
	SITE_FILE,
};

/* The C library, the loader and ttmem: they are in every stack. */
static const char *const site_never_modules[] = {
	"libc.so",  "libc-2.", "libpthread", "ld-linux", "ld-2.",   "libdl.so",   "libm.so",
	"librt.so", "ld-musl", "libc.musl",  "libttmem", "_ttmem.", "linux-vdso", "[vdso]",
};

static const char *const site_runtime_modules[] = {
	"libstdc++.so", "libc++.so", "libc++abi.so", "libgcc_s.so", "libunwind.so",
	"libpython",    "_ctypes.",  "libffi.so",    "libnanobind", "libtt_metal.",
	"_ttnn",        "libttnn",   "libtt-umd",    "_ttml",       "libtt_stl",
};

/* What starts programs, in those that contain the C library, and ttmem's own names. */
static const char *const site_never_functions[] = {
	"__libc_start", "__libc_csu", "ttmem_", "ttmem::", "_dl_", "call_init",
};

static const char *const site_runtime_functions[] = {
	"std::",           "__gnu_cxx::",  "__cxxabiv1::",  "operator new",
	"operator delete", "pybind11::",   "nanobind::",    "tt::tt_metal::",
	"ttnn::",          "ttsl::",       "tt::stl::",     "tt::umd::",
	"tt::tt_fabric::", "tt::llrt::",   "tf::",          "_Py",
	"PyObject_",       "PyEval_",      "PyVectorcall_", "PyRun_",
	"PyImport_",       "PyCFunction_", "Py_",           "__cxa_",
	"__gxx_",
};

/* Folders of Python files that run an application, or pass its calls to tt-metal. */
static const char *const site_runtime_folders[] = {
	"_pytest",
	"pluggy",
	"asyncio",
	"xdist",
	"execnet",
	"concurrent/futures",
	"ttnn/ttnn",
	"ttnn/operations",
	"ttnn/experimental_loader",
	"pytest",
	"site-packages/ttnn",
	"dist-packages/ttnn",
	"site-packages/ttml",
	"dist-packages/ttml",
};

/* Of ttnn, wherever its folder is. Other files of such a folder may well be the application's. */
static const char *const site_ttnn_files[] = {
	"ttnn/core.py",   "ttnn/decorators.py",       "ttnn/device.py",
	"ttnn/graph.py",  "ttnn/operation_tracer.py", "ttnn/model_preprocessing.py",
	"ttnn/tracer.py", "ttnn/torch_tracer.py",
};

static char *site_patterns; /* set before there are threads */

static bool site_begins(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool site_begins_any(const char *text, const char *const *beginnings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (site_begins(text, beginnings[i]))
			return true;
	}
	return false;
}

static const char *site_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether a path leads through @folder, which may have several parts. */
static bool site_is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	for (const char *at = strstr(path, folder); at; at = strstr(at + 1, folder)) {
		if ((at == path || at[-1] == '/') && at[length] == '/')
			return true;
	}
	return false;
}

/* "python", "python3", "python3.11": the interpreter itself. */
static bool site_is_interpreter(const char *module)
{
	return site_begins(module, "python") &&
	       module[strlen("python") + strspn(module + strlen("python"), "0123456789.")] == '\0';
}

static enum site_rank site_rank_module(const char *path)
{
	const char *module = site_base(path);

	if (site_begins_any(module, site_never_modules, ARRAY_SIZE(site_never_modules)))
		return SITE_NEVER;
	if (site_is_interpreter(module) ||
	    site_begins_any(module, site_runtime_modules, ARRAY_SIZE(site_runtime_modules)))
		return SITE_RUNTIME;
	return SITE_FILE;
}

static enum site_rank site_rank_function(const char *function)
{
	size_t length;
	const char *name = frame_patterns_name(function, &length);

	if (strcmp(function, "_start") == 0 || frames_is_reporting(function, NULL) ||
	    site_begins_any(name, site_never_functions, ARRAY_SIZE(site_never_functions)))
		return SITE_NEVER;
	if (site_begins_any(name, site_runtime_functions, ARRAY_SIZE(site_runtime_functions)))
		return SITE_RUNTIME;
	return SITE_FILE;
}

/* The standard library, but not what is installed beside it. */
static bool site_is_standard_python(const char *file)
{
	const char *at = strstr(file, "/lib/python3");

	if (!at)
		at = strstr(file, "/lib64/python3");
	return (at && !strstr(at, "-packages/")) || strcmp(site_base(file), "runpy.py") == 0;
}

/* ttmem's Python package, and the old client's module. */
static bool site_is_own_python(const char *file)
{
	const char *base = site_base(file);

	return strcmp(base, "allocation_client.py") == 0 ||
	       (site_is_below(file, "ttmem") &&
		(base[0] == '_' || strcmp(base, "pytest_plugin.py") == 0) &&
		base - file > (ptrdiff_t)strlen("ttmem") &&
		site_begins(base - strlen("ttmem/"), "ttmem/"));
}

static bool site_ends(const char *path, const char *end)
{
	size_t length = strlen(path), tail = strlen(end);

	return length > tail && path[length - tail - 1] == '/' &&
	       strcmp(path + length - tail, end) == 0;
}

static bool site_is_ttnn(const char *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(site_ttnn_files); i++) {
		if (site_ends(file, site_ttnn_files[i]))
			return true;
	}
	return false;
}

static enum site_rank site_rank_python(const char *file)
{
	if (site_begins(file, "<frozen ") || site_is_standard_python(file))
		return SITE_RUNTIME;
	if (site_is_own_python(file))
		return SITE_NEVER;
	if (site_is_ttnn(file))
		return SITE_RUNTIME;
	for (size_t i = 0; i < ARRAY_SIZE(site_runtime_folders); i++) {
		if (site_is_below(file, site_runtime_folders[i]))
			return SITE_RUNTIME;
	}
	return SITE_FILE;
}

static enum site_rank site_rank_file(const struct frames_one *frame)
{
	const char *base = site_base(frame->file);

	if (frame->is_python)
		return site_rank_python(frame->file);
	/* Headers whose functions became part of the application. */
	if (strcmp(base, "ttmem.hpp") == 0 || strcmp(base, "allocation_client.hpp") == 0)
		return SITE_NEVER;
	if (strcmp(base, "libc_start_call_main.h") == 0 || strcmp(base, "libc-start.c") == 0)
		return SITE_NEVER;
	/* The script that runs pytest has no ".py". */
	return strcmp(base, "pytest") == 0 || strcmp(base, "py.test") == 0 ? SITE_RUNTIME
									   : SITE_FILE;
}

/* Old clients send "path/lib.so(name+0x1f) [0x7f0012]". */
static enum site_rank site_rank_symbol(const char *symbol)
{
	char module[SITE_MODULE];

	snprintf(module, sizeof(module), "%.*s", (int)strcspn(symbol, "( "), symbol);
	return site_rank_module(module);
}

static enum site_rank site_lower(enum site_rank a, enum site_rank b)
{
	return a < b ? a : b;
}

static enum site_rank site_rank(const struct frames_one *frame)
{
	bool is_address = frames_is_address(frame);
	enum site_rank rank = SITE_FILE;

	if (frame->module)
		rank = site_lower(rank, site_rank_module(frame->module));
	if (frame->function && !frame->is_python && !is_address)
		rank = site_lower(rank, site_rank_function(frame->function));
	if (frame->function && !frame->module && !frame->file && strstr(frame->function, " [0x"))
		rank = site_lower(rank, site_rank_symbol(frame->function));
	if (frame->file)
		rank = site_lower(rank, site_rank_file(frame));
	if (rank > SITE_NAMED && (frame->is_skipped || frame_patterns_match(site_patterns, frame)))
		return SITE_NAMED;
	if (rank < SITE_FILE || frame->file)
		return rank;
	return frame->function && !is_address ? SITE_FUNCTION : SITE_ADDRESS;
}

void site_consider(struct site *site, const struct frames_one *frame)
{
	enum site_rank rank;

	/* Most stacks have their site among the first frames. */
	if (site->rank == SITE_FILE || (!frame->function && !frame->file && !frame->module))
		return;
	rank = site_rank(frame);
	if (rank > site->rank)
		*site = (struct site){.frame = *frame, .rank = rank};
}

bool site_find(struct frames *frames, const char *stack, struct frames_one *ret_frame)
{
	struct site site = SITE_NULL;
	struct frames_one frame;

	frames_init(frames, stack);
	while (site.rank < SITE_FILE && frames_next(frames, &frame))
		site_consider(&site, &frame);
	*ret_frame = site.frame;
	return site.rank > 0;
}

const char *site_frame_text(const struct frames_one *frame, char *ret_text, size_t size)
{
	const char *function = frame->function ? frame->function : "?";

	if (frame->file && frame->line)
		snprintf(ret_text, size, "%s (%s:%" PRIu32 ")", function, site_base(frame->file),
			 frame->line);
	else if (frame->file)
		snprintf(ret_text, size, "%s (%s)", function, site_base(frame->file));
	else if (frame->module && !frames_is_address(frame))
		snprintf(ret_text, size, "%s (%s)", function, frame->module);
	else
		snprintf(ret_text, size, "%s", function);
	return ret_text;
}

const char *site_text(const char *stack, char *ret_text, size_t size)
{
	CLEANUP(frames_deinit) struct frames frames;
	struct frames_one frame;

	ret_text[0] = '\0';
	if (site_find(&frames, stack, &frame))
		(void)site_frame_text(&frame, ret_text, size);
	return ret_text;
}

int site_skip_frames(const char *patterns)
{
	char *all;

	if (!patterns || !*patterns)
		return 0;
	if (asprintf(&all, "%s%s%s", site_patterns ? site_patterns : "", site_patterns ? "," : "",
		     patterns) < 0)
		return -ENOMEM;
	free(site_patterns);
	site_patterns = all;
	return 0;
}
