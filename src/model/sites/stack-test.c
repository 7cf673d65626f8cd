/* SPDX-License-Identifier: Apache-2.0 */

/* Stacks in a pool, their lines, and what users see of them. */

#include "model/sites/stack.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_frame(const struct frame *frame, const struct frame *expected)
{
	return same(frame->function, expected->function) && same(frame->file, expected->file) &&
	       same(frame->module, expected->module) && frame->line == expected->line &&
	       frame->is_python == expected->is_python;
}

UNIT(no_text_is_no_stack)
{
	assert(!testing_stack(NULL) && !testing_stack(""));
	assert(same(testing_line(NULL), ""));
}

UNIT(frames_are_read_innermost_first)
{
	const struct stack *stack =
		testing_stack("run.py:3:main -> abort @ libc.so.6 -> app+0x1f @ app -> "
			      "/x/a.cc:9:ns::f(int)::operator-> @ lib a @ b.so");

	assert(stack && stack->count == 4);
	assert(is_frame(&stack->frames[0],
			&(struct frame){.function = "ns::f(int)::operator-> @ lib a",
					.file = "/x/a.cc",
					.line = 9,
					.module = "b.so"}));
	assert(is_frame(&stack->frames[1],
			&(struct frame){.function = "app+0x1f", .module = "app"}));
	assert(is_frame(&stack->frames[2],
			&(struct frame){.function = "abort", .module = "libc.so.6"}));
	assert(is_frame(&stack->frames[3], &(struct frame){.function = "main",
							   .file = "run.py",
							   .line = 3,
							   .is_python = true}));
}

/* As old clients send them. */
UNIT(frames_of_old_clients_have_no_module)
{
	const struct stack *stack =
		testing_stack("a.c:7:? -> ./libtt.so(+0x1f) [0x7f] -> lib.so+0x1f");

	assert(stack && stack->count == 3);
	assert(!stack->frames[0].module && !frame_is_address(&stack->frames[0]));
	assert(!stack->frames[1].module && !stack->frames[1].file);
	assert(!stack->frames[2].function && stack->frames[2].line == 7);
}

/* Generated Python code, and frames that were seen earlier. */
UNIT(python_frames_are_recognised)
{
	const struct stack *stack = testing_stack("<stdin>:1:<module> -> a.py:12:f (approximate)");

	assert(stack->frames[0].is_python && stack->frames[0].is_approximate);
	assert(same(stack->frames[0].function, "f") && stack->frames[0].line == 12);
	assert(stack->frames[1].is_python && !stack->frames[1].is_approximate);
	assert(same(stack->frames[1].function, "<module>"));
	assert(same(stack->frames[1].file, "<stdin>"));
}

UNIT(a_line_that_is_read_is_written_as_it_was)
{
	static const char *const lines[] = {
		"main",
		"a.c:0:? -> b.py:1:f (approximate)",
		"app+0x1 (build 0a) (skipped) (cut) @ app -> a.c:9:f (skipped) (cut) @ app",
		"... ->  -> x @ libx.so",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert(same(testing_line(testing_stack(lines[i])), lines[i]));
}

UNIT(a_line_that_is_too_long_is_cut)
{
	const struct stack *stack = testing_stack("a.c:1:f -> s.c:22:g @ app");
	char text[32];

	for (size_t size = 1; size <= 26; size++)
		assert(strncmp(stack_line(stack, text, size), "a.c:1:f -> s.c:22:g @ app",
			       size - 1) == 0 &&
		       strlen(text) == size - 1);
}

UNIT(equal_stacks_of_a_pool_are_one)
{
	struct stack_maker maker = STACK_MAKER_INIT(&testing_stacks);
	const struct stack *stack = testing_stack("a.py:3:main -> s.c:4:f @ app"), *copy;
	struct pool other = POOL_NULL;
	char file[] = "s.c";

	stack_maker_add(&maker,
			&(struct frame){.function = "f", .file = file, .line = 4, .module = "app"});
	stack_maker_add(&maker, &(struct frame){.function = "main", .file = "a.py", .line = 3});
	assert(stack_maker_finish(&maker) == stack && !stack_maker_finish(&maker));
	assert(testing_stack("a.py:3:main -> s.c:4:f (cut) @ app") != stack);
	assert(testing_stack("s.c:4:f @ app") != stack);
	copy = stack_copy(&other, stack);
	assert(copy && copy != stack && stack_copy(&other, stack) == copy);
	assert(same(testing_line(copy), "a.py:3:main -> s.c:4:f @ app"));
	assert(!stack_copy(&other, NULL));
	pool_deinit(&other);
}

/* Without a file there is no line, and "?" is not known: equal lines are equal stacks. */
UNIT(what_no_line_tells_is_in_no_stack)
{
	struct stack_maker maker = STACK_MAKER_INIT(&testing_stacks);

	stack_maker_add(&maker, &(struct frame){.function = "f", .line = 4, .is_python = true});
	stack_maker_add(&maker, &(struct frame){.function = "?"});
	assert(stack_maker_finish(&maker) == testing_stack("? -> f"));
}

/* Only in a line it looks like two. */
UNIT(a_name_with_an_arrow_is_one_frame)
{
	struct stack_maker maker = STACK_MAKER_INIT(&testing_stacks);
	const struct stack *stack;
	char text[64];

	stack_maker_add(&maker, &(struct frame){.function = "f() -> int", .module = "app"});
	stack = stack_maker_finish(&maker);
	assert(stack->count == 1);
	assert(same(stack_calls(stack, text, sizeof(text)), "app:f() -> int"));
	assert(same(stack_line(stack, text, sizeof(text)), "f() -> int @ app"));
}

UNIT(stacks_have_the_order_of_their_lines)
{
	static const char *const lines[] = {"",
					    "a",
					    "a -> b",
					    "a -> s.c:10:f",
					    "a -> s.c:9:f",
					    "a @ lib -> a",
					    "a+0x1 @ a",
					    "s.c:10:f",
					    "s.c:9:f (cut)"};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(lines); k++) {
			int r = stack_compare(testing_stack(lines[i]), testing_stack(lines[k]));

			assert(strcmp(lines[i], lines[k]) < 0 ? r < 0 : i == k ? r == 0 : r > 0);
		}
	}
}

UNIT(plain_text_drops_redundant_modules)
{
	char text[256], small[8];

	assert(same(
		stack_plain(testing_stack("a.c:1:f @ app -> abort @ libc.so.6 -> app+0x1f @ app"),
			    false, text, sizeof(text)),
		"a.c:1:f -> abort @ libc.so.6 -> app+0x1f"));
	assert(same(stack_plain(testing_stack("_start @ app -> main.c:9:call_main @ libc.so.6 -> "
					      "a.c:1:main @ app -> "
					      "qsort @ libc.so.6 -> a.c:5:f @ app"),
				false, text, sizeof(text)),
		    "a.c:1:main -> qsort @ libc.so.6 -> a.c:5:f"));
	/* In a program without names. */
	assert(same(
		stack_plain(
			testing_stack(
				"app+0x1281 @ app -> s.c:3:__libc_start_main_impl @ libc.so.6 -> "
				"__libc_start_call_main @ libc.so.6 -> app+0x11da @ app"),
			false, text, sizeof(text)),
		"app+0x11da"));
	assert(same(
		stack_plain(
			testing_stack(
				"app+0x1 @ app -> app+0x2 @ app -> __libc_start_main @ libc.so.6"),
			false, text, sizeof(text)),
		"app+0x1 -> app+0x2 -> __libc_start_main @ libc.so.6"));
	assert(same(stack_plain(testing_stack("abort @ libc.so.6"), false, text, sizeof(text)),
		    "abort @ libc.so.6"));
	assert(same(stack_plain(testing_stack(""), false, text, sizeof(text)), ""));
	assert(same(stack_plain(testing_stack(" ->  -> "), false, text, sizeof(text)), " ->  -> "));
	assert(same(stack_plain(testing_stack("a.c:1:function @ app"), false, small, sizeof(small)),
		    "a.c:1:f"));
}

UNIT(frames_of_our_own_are_recognised)
{
	assert(frame_is_reporting("ttmem_metal::Ledger::end(void const*)", "app"));
	assert(frame_is_reporting("void ttmem_metal::each<int>(int)", NULL));
	assert(frame_is_reporting("tt::tt_metal::GraphTracker::track_allocate(x)", "libtt.so"));
	assert(frame_is_reporting(NULL, "libttmem-metal.so"));
	assert(frame_is_reporting("std::map<int>::find", "libttmem-metal-2.so.1"));
	assert(!frame_is_reporting("load(ttmem_metal::Ledger &)", "app"));
	assert(!frame_is_reporting("my_ttmem_metal::load", "app"));
	assert(!frame_is_reporting("tt::tt_metal::Buffer::create", "libtt_metal.so"));
	assert(!frame_is_reporting("main", "libttmem-metal"));
	assert(!frame_is_reporting(NULL, NULL));
}

UNIT(unresolved_addresses_are_recognised)
{
	const struct frame address = {.function = "app+0x1f", .module = "app"};
	const struct frame named = {.function = "app", .module = "app"};
	const struct frame filed = {.function = "app+0x1", .module = "app", .file = "a.c"};

	assert(frame_is_address(&address));
	assert(!frame_is_address(&named) && !frame_is_address(&filed));
}

static bool calls(const char *stack, const char *expected)
{
	char text[256];

	return strcmp(stack_calls(testing_stack(stack), text, sizeof(text)), expected) == 0;
}

UNIT(calls_have_no_lines_and_no_folders)
{
	assert(calls(NULL, "") && calls("", ""));
	assert(calls("/home/a/m.py:3:main -> /x/y/a.cc:9:ns::f(int) @ app",
		     "a.cc:ns::f(int) <- m.py:main"));
	assert(calls("/other/m.py:30:main -> a.cc:10:ns::f(int) @ /opt/app",
		     "a.cc:ns::f(int) <- m.py:main"));
	assert(calls("a.py:3:f (approximate)", "a.py:f"));
	assert(calls("a.c:7:load.constprop.0 @ app -> a.c:8:f.part.1.cold @ app",
		     "a.c:f <- a.c:load"));
}

/* Their number changes with every build; so do offsets. */
UNIT(calls_without_names_are_a_module)
{
	assert(calls("main @ app -> lib.so+0x1f @ lib.so -> lib.so+0x2f @ lib.so -> g @ lib.so",
		     "lib.so:g <- lib.so <- app:main"));
	assert(calls("./libtt.so(name+0x1f) [0x7f] -> lib.so+0x1f", "lib.so <- ./libtt.so(name"));
}

UNIT(calls_end_where_the_program_begins)
{
	assert(calls("_start @ app -> __libc_start_main @ libc.so.6 -> a.c:4:main @ app -> "
		     "qsort @ libc.so.6 -> a.c:3:f @ app",
		     "a.c:f <- a.c:main"));
	assert(calls("/p/_pytest/runner.py:2:run -> /p/pluggy/_callers.py:9:call -> "
		     "/t/test_a.py:3:test_it -> /t/_pytest_like/a.py:4:f",
		     "a.py:f <- test_a.py:test_it"));
	assert(calls("a.py:1:main -> b.py:2:f", "b.py:f <- a.py:main"));
}

UNIT(calls_are_cut_to_fit)
{
	char text[8];

	assert(strcmp(stack_calls(testing_stack("a.py:3:f -> b.py:4:g"), text, sizeof(text)),
		      "b.py:g ") == 0);
}

UNIT(a_frame_without_a_name_has_the_build_id_of_its_module)
{
	const struct stack *stack =
		testing_stack("a.c:3:main @ app -> app+0x1f (build 0a1b) @ app -> x @ app");
	char text[128];

	assert(!stack->frames[0].build_id && same(stack->frames[1].build_id, "0a1b"));
	assert(is_frame(&stack->frames[1],
			&(struct frame){.function = "app+0x1f", .module = "app"}));
	assert(frame_is_address(&stack->frames[1]));
	/* People need not see it. */
	assert(same(stack_plain(stack, false, text, sizeof(text)),
		    "a.c:3:main -> app+0x1f -> x @ app"));
	assert(same(stack_calls(stack, text, sizeof(text)), "app:x <- app <- a.c:main"));
	/* A name that looks like it is a name. */
	stack = testing_stack(
		"a.py:1:x (build 00) -> f (build 00) @ app -> app+0x1 (build g) @ app");
	assert(stack->count == 3);
	assert(!stack->frames[0].build_id && !stack->frames[2].build_id);
	assert(same(stack->frames[1].function, "f (build 00)"));
	assert(same(stack->frames[2].function, "x (build 00)"));
}

/* The lines of a stack that is shown, joined by "|". */
static void check_folded(const char *line, const char *expected)
{
	const struct stack *stack = testing_stack(line);
	struct frame shown;
	char text[512] = "", function[STACK_SHOWN];
	size_t length = 0;

	for (size_t i = 0; stack && i < stack->count;) {
		i = stack_shown(stack, i, &shown, function);
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s%s",
					   length ? "|" : "", shown.function ? shown.function : "?",
					   shown.is_cut ? "!" : "");
		assert(length < sizeof(text));
	}
	assert(strcmp(text, expected) == 0);
}

UNIT(frames_of_a_module_without_names_are_shown_as_one)
{
	char text[128];

	check_folded(
		"main @ app -> t.so+0x1 @ t.so -> t.so+0x2 @ t.so -> t.so+0x3 @ t.so -> f @ t.so",
		"f|t.so (3 frames)|main");
	check_folded("a.so+0x1 @ a.so -> t.so+0x2 @ t.so", "t.so+0x2|a.so+0x1");
	check_folded("t.so+0x1 (cut) @ t.so -> t.so+0x2 @ t.so", "t.so (2 frames)!");
	check_folded("", "");
	assert(same(stack_plain(testing_stack("m.py:1:f -> a.so+0x12 @ a.so -> a.so+0x3f @ a.so -> "
					      "b.so+0x1 @ b.so -> a.so+0x5 @ a.so -> "
					      "a.so+0x7 (build 1) @ a.so -> a.so+0x9 @ a.so"),
				true, text, sizeof(text)),
		    "m.py:1:f -> a.so (2 frames) -> b.so+0x1 -> a.so (3 frames)"));
	assert(same(stack_plain(testing_stack("m.py:1:f -> +0x1 -> +0x2 -> a+0xg -> a+0xg"), true,
				text, sizeof(text)),
		    "m.py:1:f -> +0x1 -> +0x2 -> a+0xg -> a+0xg"));
	assert(same(stack_plain(testing_stack("a+0x1 (cut) @ a -> a+0x2 @ a"), true, text,
				sizeof(text)),
		    "a+0x1 (cut) -> a+0x2"));
	assert(same(stack_plain(NULL, true, text, sizeof(text)), ""));
}
