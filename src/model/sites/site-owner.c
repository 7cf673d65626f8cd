/* SPDX-License-Identifier: Apache-2.0 */

/* Which code is the application's, and of it which is the user's own. */

#include "model/sites/site-owner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "model/sites/frame-patterns.h"

#define SITE_MODULE 512u /* longer ones are not known anyway */

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
	"pytest",
	"site-packages/ttnn",
	"dist-packages/ttnn",
	"site-packages/ttml",
	"dist-packages/ttml",
};

static const char *const site_ttnn_folders[] = {
	"ttnn/ttnn",
	"ttnn/operations",
	"ttnn/experimental_loader",
};

/* Of ttnn, wherever its folder is. Other files of such a folder may well be the application's. */
static const char *const site_ttnn_files[] = {
	"ttnn/core.py",   "ttnn/decorators.py",       "ttnn/device.py",
	"ttnn/graph.py",  "ttnn/operation_tracer.py", "ttnn/model_preprocessing.py",
	"ttnn/tracer.py", "ttnn/torch_tracer.py",
};

/* Folders into which package managers put the code of others. */
static const char *const site_package_folders[] = {
	"site-packages", "dist-packages", "node_modules",    ".cargo/registry",
	"_deps",         ".cpmcache",     "vcpkg_installed",
};

/* PyTorch, wherever it is; a folder that is only called "torch" may well be the user's. */
static const char *const site_torch_folders[] = {
	"torch/nn",          "torch/optim",
	"torch/autograd",    "torch/cuda",
	"torch/distributed", "torch/jit",
	"torch/fx",          "torch/_dynamo",
	"torch/_inductor",   "torch/_functorch",
	"torch/ao",          "torch/utils/data",
	"torch/testing",     "torch/_higher_order_ops",
};

static const char *const site_torch_files[] = {
	"torch/functional.py",    "torch/_tensor.py", "torch/_ops.py",
	"torch/serialization.py", "torch/_utils.py",  "torch/utils/checkpoint.py",
	"torch/hub.py",
};

/* Frameworks that are compiled into, or loaded by, the application. */
static const char *const site_framework_functions[] = {
	"tt::tt_metal::", "ttnn::", "ttml::", "at::", "c10::", "torch::", "caffe2::",
};

static const char *const site_framework_modules[] = {
	"libtorch", "libc10",   "libcuda",       "libcu",
	"libnccl",  "libnvrtc", "libtensorflow", "libonnxruntime",
};

/* Python code that a package has generated. */
static const char *const site_generated_files[] = {
	"<eval_with_key>",
	"<__array_function__",
	"<attrs generated",
	"<decorator-gen",
};

/* Never the user's, even where nothing else is; the standard library of Rust is named by its commit. */
static const char *const site_system_prefixes[] = {
	"/usr/include/",   "/usr/lib/", "/usr/lib64/", "/usr/local/include/",
	"/usr/local/lib/", "/lib/",     "/lib64/",     "/nix/store/",
	"/gnu/store/",     "/snap/",    "/rustc/",
};

/* Where applications are installed, and in containers the user's own too. */
static const char *const site_prefixes[] = {"/usr/", "/opt/"};

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

/* The last place where a path leads through @folder, which may have several parts; NULL = none. */
static const char *site_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	const char *last = NULL;

	for (const char *at = strstr(path, folder); at; at = strstr(at + 1, folder)) {
		if ((at == path || at[-1] == '/') && at[length] == '/')
			last = at;
	}
	return last;
}

static const char *site_below_any(const char *path, const char *const *folders, size_t count)
{
	const char *at = NULL;

	for (size_t i = 0; !at && i < count; i++)
		at = site_below(path, folders[i]);
	return at;
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

	if (strcmp(function, "_start") == 0 || frame_is_reporting(function, NULL) ||
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
	       (site_below(file, "ttmem") &&
		(base[0] == '_' || strcmp(base, "pytest_plugin.py") == 0) &&
		base - file > (ptrdiff_t)strlen("ttmem") &&
		site_begins(base - strlen("ttmem/"), "ttmem/"));
}

/* The end of a path, if it is this one, which begins with a folder; NULL = it is not. */
static const char *site_end(const char *path, const char *end)
{
	size_t length = strlen(path), tail = strlen(end);

	return length > tail && path[length - tail - 1] == '/' &&
			       strcmp(path + length - tail, end) == 0
		       ? path + length - tail
		       : NULL;
}

static const char *site_end_any(const char *path, const char *const *ends, size_t count)
{
	const char *at = NULL;

	for (size_t i = 0; !at && i < count; i++)
		at = site_end(path, ends[i]);
	return at;
}

static enum site_rank site_rank_python(const char *file)
{
	if (site_begins(file, "<frozen ") || site_is_standard_python(file))
		return SITE_RUNTIME;
	if (site_is_own_python(file))
		return SITE_NEVER;
	return site_end_any(file, site_ttnn_files, ARRAY_SIZE(site_ttnn_files)) ||
			       site_below_any(file, site_ttnn_folders,
					      ARRAY_SIZE(site_ttnn_folders)) ||
			       site_below_any(file, site_runtime_folders,
					      ARRAY_SIZE(site_runtime_folders))
		       ? SITE_RUNTIME
		       : SITE_FILE;
}

static enum site_rank site_rank_file(const struct frame *frame)
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

static enum site_rank site_rank(const struct frame *frame)
{
	bool is_address = frame_is_address(frame);
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

/* A script that an installation made to start a program: "…/bin/NAME", often in the user's folders. */
static bool site_is_starter(const struct frame *frame)
{
	const char *base = site_base(frame->file);

	return base - frame->file >= 4 && memcmp(base - 4, "bin/", 4) == 0 &&
	       (base - frame->file == 4 || base[-5] == '/') && !strchr(base, '.') &&
	       frame->function && strcmp(frame->function, "<module>") == 0;
}

static bool site_is_framework(const struct frame *frame)
{
	const char *module = frame->module ? site_base(frame->module) : "";
	size_t length;

	if (frame->is_python && frame->file)
		return site_owner_package(frame->file);
	return site_begins_any(module, site_framework_modules,
			       ARRAY_SIZE(site_framework_modules)) ||
	       (frame->function &&
		site_begins_any(frame_patterns_name(frame->function, &length),
				site_framework_functions, ARRAY_SIZE(site_framework_functions)));
}

static enum site_owner site_owner_of_file(const struct frame *frame)
{
	const char *file = frame->file;

	if (site_owner_package(file) || site_is_starter(frame) ||
	    site_begins_any(file, site_system_prefixes, ARRAY_SIZE(site_system_prefixes)) ||
	    site_begins_any(file, site_generated_files, ARRAY_SIZE(site_generated_files)))
		return SITE_OTHERS;
	return site_begins_any(file, site_prefixes, ARRAY_SIZE(site_prefixes)) ? SITE_PERHAPS
									       : SITE_OWN;
}

/* Only a program is certainly the user's; old clients have the module in the name. */
static enum site_owner site_owner_of_module(const struct frame *frame)
{
	const char *module = frame->module ? frame->module : frame->function;
	const char *library = module ? strstr(module, ".so") : NULL;

	if (!frame->module && library && library > module + strcspn(module, "("))
		library = NULL;
	if (library || (!frame->module && !(module && strstr(module, " [0x"))))
		return SITE_PERHAPS;
	return SITE_OWN;
}

/* Whether a frame of a runtime or a framework says more than that something was called. */
static bool site_is_call(const struct frame *frame, enum site_rank rank)
{
	const char *function = frame->function;

	if (rank == SITE_NEVER || rank == SITE_NAMED || frame->is_skipped || !function ||
	    strstr(function, "+0x") || strcmp(function, "<module>") == 0 ||
	    strstr(function, "{lambda") || strstr(function, "operator()"))
		return false;
	/* What passes every operation of ttnn on. */
	if (frame->is_python && frame->file && site_end(frame->file, "ttnn/decorators.py"))
		return false;
	return rank != SITE_RUNTIME || site_is_framework(frame);
}

struct site_owner_class site_owner_of(const struct frame *frame)
{
	struct site_owner_class class = {.rank = site_rank(frame)};

	class.is_call = site_is_call(frame, class.rank);
	if (class.rank <= SITE_NAMED || (!frame->is_python && site_is_framework(frame)))
		return class;
	class.owner = frame->file ? site_owner_of_file(frame) : site_owner_of_module(frame);
	return class;
}

const char *site_owner_package(const char *file)
{
	const char *at =
		site_below_any(file, site_package_folders, ARRAY_SIZE(site_package_folders));

	for (size_t i = 0; at && i < ARRAY_SIZE(site_package_folders); i++) {
		size_t length = strlen(site_package_folders[i]);

		if (strncmp(at, site_package_folders[i], length) == 0 && at[length] == '/')
			return at + length + 1;
	}
	at = site_below_any(file, site_torch_folders, ARRAY_SIZE(site_torch_folders));
	if (!at)
		at = site_end_any(file, site_torch_files, ARRAY_SIZE(site_torch_files));
	if (!at)
		at = site_below_any(file, site_ttnn_folders, ARRAY_SIZE(site_ttnn_folders));
	if (!at)
		at = site_end_any(file, site_ttnn_files, ARRAY_SIZE(site_ttnn_files));
	return at;
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
