/* SPDX-License-Identifier: Apache-2.0 */

/* The frame that stands for a stack. Stacks are written outermost first. */

#include "model/sites/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/sites/frame-patterns.h"
#include "model/testing/testing-stack.h"

struct site_row {
	const char *stack;
	const char *site; /* "" = none */
};

static void check_rows(const struct site_row *rows, size_t count)
{
	char text[512];

	for (size_t i = 0; i < count; i++) {
		site_text(testing_stack(rows[i].stack), text, sizeof(text));
		if (strcmp(text, rows[i].site) != 0) {
			fprintf(stderr, "%s\n  gives %s\n  not   %s\n", rows[i].stack, text,
				rows[i].site);
			abort();
		}
	}
}

#define START                                                                     \
	"_start @ app -> libc-start.c:360:__libc_start_main_impl @ libc.so.6 -> " \
	"../sysdeps/nptl/libc_start_call_main.h:58:__libc_start_call_main @ libc.so.6"

UNIT(the_innermost_frame_of_the_application_stands_for_a_stack)
{
	static const struct site_row rows[] = {
		{"a.py:1:main -> m.py:7:step", "step (m.py:7)"},
		{"/x/a.c:3:main @ app -> /x/a.c:9:make @ app", "make (a.c:9)"},
		/* The library that reports, in each of its forms. */
		{"a.c:3:main @ app -> ttmem_alloc @ libttmem.so.0", "main (a.c:3)"},
		{"a.c:3:main @ app -> call.c:80:call_alloc @ libttmem.so.0.1", "main (a.c:3)"},
		{"a.c:3:main @ app -> ttmem_alloc @ app", "main (a.c:3)"},
		{"a.cc:3:main @ app -> ttmem.hpp:40:ttmem::alloc(int) @ app", "main (a.cc:3)"},
		{"a.cc:3:f() @ app -> "
		 "/i/compat/allocation_client.hpp:9:AllocationClient::alloc(int) @ app",
		 "f() (a.cc:3)"},
		{"m.py:4:f -> /p/ttmem/__init__.py:99:alloc", "f (m.py:4)"},
		{"/home/me/ttmem/train.py:4:f", "f (train.py:4)"},
		{"m.py:4:f -> _PyEval @ python3.11 -> alloc @ _ttmem.cpython-311-x86_64.so",
		 "f (m.py:4)"},
		{"m.py:4:f -> allocation_client.py:77:allocate", "f (m.py:4)"},
		{"a.cc:3:load() @ app -> tt::tt_metal::GraphTracker::track_allocate(int) @ "
		 "libtt_metal.so -> ttmem_metal::Watch::track(int) @ libttmem-metal.so",
		 "load() (a.cc:3)"},
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

UNIT(runtimes_only_pass_calls_on)
{
	static const struct site_row rows[] = {
		{"a.cc:5:f(int) @ app -> "
		 "/usr/include/c++/12/bits/std_function.h:591:std::function<void "
		 "()>::operator()() const @ app",
		 "f(int) (a.cc:5)"},
		{"a.cc:5:f(int) @ app -> void std::__invoke_impl<void, g>(g) @ app",
		 "f(int) (a.cc:5)"},
		{"a.cc:5:f(int) @ app -> operator new(unsigned long) @ libstdc++.so.6",
		 "f(int) (a.cc:5)"},
		{"a.cc:5:f(int) @ app -> operator new(unsigned long) @ app", "f(int) (a.cc:5)"},
		/* A parameter, template argument or return type is not where it belongs. */
		{"a.cc:5:main @ app -> b.cc:6:app::take(std::vector<int>&) @ app",
		 "app::take(std::vector<int>&) (b.cc:6)"},
		{"a.cc:5:main @ app -> b.cc:6:std::vector<int> app::make<std::string>(int) @ app",
		 "std::vector<int> app::make<std::string>(int) (b.cc:6)"},
		{"a.cc:5:main @ app -> b.cc:6:(anonymous namespace)::fill(int) @ app",
		 "(anonymous namespace)::fill(int) (b.cc:6)"},
		{"m.py:7:step -> cfunction_call @ python3.11 -> "
		 "pybind11::cpp_function::dispatcher(_object*, _object*) @ ext.so",
		 "step (m.py:7)"},
		{"m.py:7:step -> nb_func.cpp:1:nanobind::detail::nb_func_call @ ext.so",
		 "step (m.py:7)"},
		{"m.py:7:step -> /pkg/ttnn/ttnn/decorators.py:300:__call__ -> "
		 "ttnn::operations::creation::zeros(int) @ _ttnn.so -> "
		 "tensor.cc:5:tt::tt_metal::Tensor::allocate() @ libtt_metal.so",
		 "step (m.py:7)"},
		{"m.py:7:step -> /v/site-packages/ttnn/operations/core.py:30:from_torch",
		 "step (m.py:7)"},
		{"m.py:7:step -> /opt/x/ttnn/core.py:9:to_device -> "
		 "/opt/x/ttnn/decorators.py:9:call",
		 "step (m.py:7)"},
		{"m.py:7:step -> /opt/x/ttnn/operations/creation.py:9:zeros -> "
		 "/v/python/ttmem/_metal.py:40:operation",
		 "step (m.py:7)"},
		{"t/ttnn/test_add.py:7:test_add", "test_add (test_add.py:7)"},
		{"t/my_ttnn/core.py:7:run", "run (core.py:7)"},
		{"a.cc:5:main @ app -> tt::tt_metal::distributed::MeshBuffer::create(int) @ "
		 "libtt_metal.so -> tf::Executor::_invoke(int) @ libtt_metal.so",
		 "main (a.cc:5)"},
		{"a.cc:5:main @ app -> x.hpp:3:tt::umd::Cluster::open(int) @ app", "main (a.cc:5)"},
		{"m.py:7:step -> PyObject_Call @ app -> _PyEval_EvalFrameDefault @ app",
		 "step (m.py:7)"},
		{"/usr/lib/python3.11/asyncio/events.py:80:_run -> m.py:7:step -> "
		 "/usr/lib/python3.11/contextlib.py:81:inner",
		 "step (m.py:7)"},
		{"/usr/lib/python3.11/site-packages/mine/m.py:7:step", "step (m.py:7)"},
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

UNIT(a_frame_with_a_file_is_preferred)
{
	static const struct site_row rows[] = {
		{"m.py:7:step -> grow @ ext.so", "step (m.py:7)"},
		{"a.c:7:main @ app -> lib.so+0x12 @ lib.so", "main (a.c:7)"},
		{START " -> main @ app -> grow @ app", "grow (app)"},
		{START " -> app+0x11 @ app -> app+0x22 @ app", "app+0x22"},
		{START " -> main @ app -> lib.so+0x22 @ lib.so", "main (app)"},
		{START " -> ttmem_app+0x22 @ ttmem_app", "ttmem_app+0x22"},
		{START " -> python_app+0x22 @ python_app", "python_app+0x22"},
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

UNIT(the_code_that_starts_programs_is_never_chosen)
{
	static const struct site_row rows[] = {
		{NULL, ""},
		{"", ""},
		{START, ""},
		{"clone3 @ libc.so.6 -> start_thread @ libc.so.6", ""},
		{"_start @ static -> libc-start.c:3:__libc_start_main @ static -> main @ static",
		 "main (static)"},
		{"clone @ libc.so.6 -> std::thread::_State::run() @ libstdc++.so.6",
		 "std::thread::_State::run() (libstdc++.so.6)"},
		{"/usr/bin/pytest:8:<module> -> /v/_pytest/runner.py:300:call -> "
		 "/v/pluggy/_callers.py:80:_multicall -> t.py:4:test_it",
		 "test_it (t.py:4)"},
		{"/v/pluggy/_callers.py:80:_multicall -> /v/_pytest/assertion/x.py:9:hook",
		 "hook (x.py:9)"},
		{"<frozen runpy>:198:_run_module_as_main -> <string>:3:<module>",
		 "<module> (<string>:3)"},
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

UNIT(frames_of_old_clients_have_their_module_in_the_name)
{
	static const struct site_row rows[] = {
		{"./app(main+0x1f) [0x5500] -> /lib/libc.so.6(+0x2a) [0x7f00]",
		 "./app(main+0x1f) [0x5500]"},
	};

	check_rows(rows, ARRAY_SIZE(rows));
}

UNIT(frames_that_the_program_named_are_passed_over)
{
	static const struct site_row rows[] = {
		{"m.py:7:step -> m.py:2:__init__ (skipped)", "step (m.py:7)"},
		{"a.c:7:main @ app -> pool.c:2:take (skipped) @ app", "main (a.c:7)"},
		{"pool.c:2:take (skipped) @ app", "take (pool.c:2)"},
		{"std::f() @ app -> pool.c:2:take (skipped) @ app", "take (pool.c:2)"},
	};
	char text[128];

	check_rows(rows, ARRAY_SIZE(rows));
	assert(strcmp(stack_plain(
			      testing_stack("a.c:7:main @ app -> pool.c:2:take (skipped) @ app"),
			      false, text, sizeof(text)),
		      "a.c:7:main -> pool.c:2:take") == 0);
	assert(strcmp(stack_plain(testing_stack("take (skipped) @ app"), false, text, sizeof(text)),
		      "take @ app") == 0);
	assert(strcmp(stack_plain(testing_stack("a.c:7:main (cut) @ app -> pool.c:2:take @ app"),
				  false, text, sizeof(text)),
		      "a.c:7:main (cut) -> pool.c:2:take") == 0);
}

UNIT(frames_that_the_reader_names_are_passed_over)
{
	static const struct site_row rows[] = {
		{"a.cc:7:main @ app -> x.cc:2:pool::arena::take(int) @ app", "main (a.cc:7)"},
		{"a.cc:7:main @ app -> x.cc:2:int pool::take<int>(int) @ app", "main (a.cc:7)"},
		{"a.cc:7:main @ app -> x.cc:2:pools::take(int) @ app", "pools::take(int) (x.cc:2)"},
		{"m.py:7:step -> /a/b/alloc_py.py:1:f", "step (m.py:7)"},
		{"m.py:7:step -> make_tensor @ libpool.so.3", "step (m.py:7)"},
		{"m.py:7:step -> m.py:1:xmalloc", "step (m.py:7)"},
		{"m.py:7:step -> m.py:1:xmalloc2", "xmalloc2 (m.py:1)"},
	};

	assert(site_skip_frames(NULL) == 0 && site_skip_frames("") == 0);
	assert(site_skip_frames("pool:: : alloc_*.py") == 0);
	assert(site_skip_frames("libpool.so*,xmalloc") == 0);
	check_rows(rows, ARRAY_SIZE(rows));
}

UNIT(patterns_are_separated_by_commas_and_single_colons)
{
	const struct frame frame = {
		.function = "a::b::f(int)", .file = "/x/y.cc", .module = "lib.so"};

	assert(frame_patterns_match("a::b::f", &frame));
	assert(frame_patterns_match("q:a::b::f", &frame));
	assert(frame_patterns_match("q,,:,a::*::f", &frame));
	assert(frame_patterns_match("*::f", &frame) && frame_patterns_match("?::b::", &frame));
	assert(frame_patterns_match("y.cc", &frame) && frame_patterns_match("/x/*", &frame));
	assert(frame_patterns_match("lib.*", &frame) && frame_patterns_match("*", &frame));
	assert(!frame_patterns_match("f", &frame) && !frame_patterns_match("b::", &frame));
	assert(!frame_patterns_match("", &frame) && !frame_patterns_match(NULL, &frame));
	assert(!frame_patterns_match(" , : ", &frame) && !frame_patterns_match("::", &frame));
}

UNIT(many_stars_cost_little)
{
	char stars[256], name[2048];
	const struct frame frame = {.function = name};

	for (size_t i = 0; i + 2 < sizeof(stars); i += 2) {
		stars[i] = '*';
		stars[i + 1] = 'a';
	}
	stars[sizeof(stars) - 2] = 'b';
	stars[sizeof(stars) - 1] = '\0';
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert(!frame_patterns_match(stars, &frame));
}

/* Without folders. */
static const char *name_of(const struct frame *frame, char *text, size_t size)
{
	const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;
	struct frame bare = *frame;

	if (slash)
		bare.file = slash + 1;
	return site_frame_text(&bare, text, size);
}

/* Which frame of a stack is the user's, what it called, and its callers: "USER > VIA < CALLER < CALLER". */
static void check_user(const char *stack, const char *expected)
{
	struct site site;
	char text[512] = "-", frame[128];

	(void)site_choose(testing_stack(stack), &site);
	if (site.user_rank)
		(void)name_of(&site.user, text, sizeof(text));
	if (site.has_via) {
		strcat(text, " > ");
		strcat(text, name_of(&site.via, frame, sizeof(frame)));
	}
	for (unsigned int i = 0; i < site.caller_count; i++) {
		strcat(text, " < ");
		strcat(text, name_of(&site.callers[i], frame, sizeof(frame)));
	}
	if (strcmp(text, expected) != 0) {
		fprintf(stderr, "%s\n  gives %s\n  not   %s\n", stack, text, expected);
		abort();
	}
}

UNIT(installed_packages_are_not_the_users)
{
	check_user("/w/t.py:7:f -> /w/venv/lib/python3.11/site-packages/torch/nn/m.py:9:cuda",
		   "f (t.py:7) > cuda (m.py:9)");
	check_user("/w/t.py:7:f -> /usr/lib/python3/dist-packages/numpy/x.py:9:zeros",
		   "f (t.py:7) > zeros (x.py:9)");
	check_user("/w/t.py:7:f -> /opt/conda/lib/python3.10/site-packages/x/y.py:9:g",
		   "f (t.py:7) > g (y.py:9)");
	check_user("/w/t.py:7:f -> /usr/local/lib/python3.12/dist-packages/x/y.py:9:g",
		   "f (t.py:7) > g (y.py:9)");
	/* A project that is installed in place is where its author edits it. */
	check_user("/w/t.py:7:f -> /home/me/mine/src/mine/model.py:9:g",
		   "g (model.py:9) < f (t.py:7)");
	check_user("/w/venv/bin/serve:8:<module> -> "
		   "/w/venv/lib/python3.11/site-packages/serve/m.py:3:go",
		   "-");
	check_user("/w/bin/train.py:8:main", "main (train.py:8)");
}

UNIT(frameworks_are_known_by_their_folders_in_a_checkout_too)
{
	check_user("/w/t.py:7:f -> /src/pytorch/torch/nn/modules/module.py:1097:cuda",
		   "f (t.py:7) > cuda (module.py:1097)");
	check_user("/w/t.py:7:f -> /src/pytorch/torch/functional.py:9:einsum",
		   "f (t.py:7) > einsum (functional.py:9)");
	check_user("/w/t.py:7:f -> /src/tt-metal/ttnn/ttnn/operations/core.py:9:from_torch",
		   "f (t.py:7) > from_torch (core.py:9)");
	check_user("/w/t.py:7:f -> /src/tt-metal/ttnn/ttnn/decorators.py:9:__call__", "f (t.py:7)");
	check_user("/src/tt-metal/models/demos/x/torch/reference.py:7:f", "f (reference.py:7)");
	check_user("/src/tt-metal/tests/ttnn/unit_tests/test_add.py:7:test_add",
		   "test_add (test_add.py:7)");
	check_user("a.cc:7:main @ app -> at::empty(int) @ libtorch_cpu.so",
		   "main (a.cc:7) > at::empty(int) (libtorch_cpu.so)");
	check_user("a.cc:7:main @ app -> /pt/aten/x.cpp:9:empty_cuda @ libtorch_cuda.so",
		   "main (a.cc:7) > empty_cuda (x.cpp:9)");
}

UNIT(the_standard_library_and_generated_code_are_not_the_users)
{
	check_user("/w/t.py:7:f -> /usr/lib/python3.11/contextlib.py:81:inner", "f (t.py:7)");
	check_user("/w/t.py:7:f -> /home/me/.pyenv/versions/3.12/lib/python3.12/functools.py:3:w",
		   "f (t.py:7)");
	check_user("/w/t.py:7:f -> <frozen importlib._bootstrap>:241:_call", "f (t.py:7)");
	check_user("/w/t.py:7:f -> <eval_with_key>.3:5:forward",
		   "f (t.py:7) > forward (<eval_with_key>.3:5)");
	check_user("<string>:3:<module>", "<module> (<string>:3)");
	check_user("<stdin>:1:<module>", "<module> (<stdin>:1)");
	check_user("/tmp/ipykernel_12/34.py:2:<module>", "<module> (34.py:2)");
	check_user("a.cc:5:f() @ app -> /usr/include/boost/x.hpp:9:boost::make() @ app",
		   "f() (a.cc:5) > boost::make() (x.hpp:9)");
}

UNIT(below_an_installed_prefix_code_is_the_users_if_nothing_else_is)
{
	check_user("/opt/ml/code/train.py:7:f -> /usr/lib/python3/dist-packages/x.py:3:g",
		   "f (train.py:7) > g (x.py:3)");
	check_user("/usr/src/app/main.py:7:f", "f (main.py:7)");
	check_user("/w/t.py:7:f -> /opt/tool/lib.py:3:g", "f (t.py:7) > g (lib.py:3)");
	check_user("/w/t.py:7:f -> /usr/local/lib/x.py:3:g", "f (t.py:7) > g (x.py:3)");
	/* All of it is installed: the site stands alone. */
	check_user("/v/lib/python3.11/site-packages/a/m.py:7:f -> "
		   "/v/lib/python3.11/site-packages/b.py:2:g",
		   "-");
}

UNIT(callers_are_the_users_and_each_function_once)
{
	check_user("a.c:9:main @ app -> a.c:7:walk @ app -> a.c:7:walk @ app -> a.c:3:take @ app",
		   "take (a.c:3) < walk (a.c:7) < main (a.c:9)");
	check_user("a.c:9:main @ app -> a.c:3:take @ app -> a.c:4:take @ app",
		   "take (a.c:4) < main (a.c:9)");
	/* Python that C++ calls back: the inner layer counts. */
	check_user("/w/t.py:9:main -> torch::autograd::Engine::run() @ libtorch_cpu.so -> "
		   "/w/op.py:3:backward "
		   "-> at::empty(int) @ libtorch_cpu.so",
		   "backward (op.py:3) > at::empty(int) (libtorch_cpu.so) < main (t.py:9)");
	check_user("main @ app -> grow @ libmine.so", "main (app) > grow (libmine.so)");
	check_user("app+0x11 @ app -> app+0x22 @ app", "app+0x22");
	check_user("a.c:7:main @ app -> pool.c:2:take (skipped) @ app", "main (a.c:7)");
	check_user("", "-");
}
