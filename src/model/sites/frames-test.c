/* SPDX-License-Identifier: Apache-2.0 */

/* Parsing stack lines, and formatting them for users. */

#include "model/sites/frames.h"

#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Whether the next frame is this one. */
static bool is_next(struct frames *frames, const struct frame *expected)
{
	struct frame frame;

	return frames_next(frames, &frame) && same(frame.function, expected->function) &&
	       same(frame.file, expected->file) && same(frame.module, expected->module) &&
	       frame.line == expected->line && frame.is_python == expected->is_python;
}

UNIT(no_text_has_no_frames)
{
	struct frames frames;
	struct frame frame;

	frames_init(&frames, NULL);
	assert(!frames_next(&frames, &frame));
	frames_deinit(&frames);
	frames_init(&frames, "");
	assert(!frames_next(&frames, &frame));
	frames_deinit(&frames);
}

UNIT(frames_are_read_innermost_first)
{
	struct frames frames;
	struct frame frame;

	frames_init(&frames, "run.py:3:main -> abort @ libc.so.6 -> app+0x1f @ app -> "
			     "/x/a.cc:9:ns::f(int)::operator-> @ lib a @ b.so");
	assert(is_next(&frames, &(struct frame){.function = "ns::f(int)::operator-> @ lib a",
						.file = "/x/a.cc",
						.line = 9,
						.module = "b.so"}));
	assert(is_next(&frames, &(struct frame){.function = "app+0x1f", .module = "app"}));
	assert(is_next(&frames, &(struct frame){.function = "abort", .module = "libc.so.6"}));
	assert(is_next(&frames, &(struct frame){.function = "main",
						.file = "run.py",
						.line = 3,
						.is_python = true}));
	assert(!frames_next(&frames, &frame));
	frames_deinit(&frames);
}

/* As old clients send them. */
UNIT(frames_of_old_clients_have_no_module)
{
	struct frames frames;
	struct frame frame;

	frames_init(&frames, "a.c:7:? -> ./libtt.so(+0x1f) [0x7f] -> lib.so+0x1f");
	assert(frames_next(&frames, &frame) && !frame.module && !frames_is_address(&frame));
	assert(frames_next(&frames, &frame) && !frame.module && !frame.file);
	assert(frames_next(&frames, &frame) && !frame.function && frame.line == 7);
	frames_deinit(&frames);
}

/* Generated Python code, and frames that were seen earlier. */
UNIT(python_frames_are_recognised)
{
	struct frames frames;
	struct frame frame;

	frames_init(&frames, "<stdin>:1:<module> -> a.py:12:f (approximate)");
	assert(frames_next(&frames, &frame) && frame.is_python && frame.is_approximate);
	assert(same(frame.function, "f") && frame.line == 12);
	assert(frames_next(&frames, &frame) && frame.is_python && !frame.is_approximate);
	assert(same(frame.function, "<module>") && same(frame.file, "<stdin>"));
	frames_deinit(&frames);
}

UNIT(plain_text_drops_redundant_modules)
{
	char text[256], small[8];

	assert(same(frames_plain("a.c:1:f @ app -> abort @ libc.so.6 -> app+0x1f @ app", text,
				 sizeof(text)),
		    "a.c:1:f -> abort @ libc.so.6 -> app+0x1f"));
	assert(same(frames_plain(
			    "_start @ app -> main.c:9:call_main @ libc.so.6 -> a.c:1:main @ app -> "
			    "qsort @ libc.so.6 -> a.c:5:f @ app",
			    text, sizeof(text)),
		    "a.c:1:main -> qsort @ libc.so.6 -> a.c:5:f"));
	/* In a program without names. */
	assert(same(frames_plain("app+0x1281 @ app -> s.c:3:__libc_start_main_impl @ libc.so.6 -> "
				 "__libc_start_call_main @ libc.so.6 -> app+0x11da @ app",
				 text, sizeof(text)),
		    "app+0x11da"));
	assert(same(frames_plain("app+0x1 @ app -> app+0x2 @ app -> __libc_start_main @ libc.so.6",
				 text, sizeof(text)),
		    "app+0x1 -> app+0x2 -> __libc_start_main @ libc.so.6"));
	assert(same(frames_plain("abort @ libc.so.6", text, sizeof(text)), "abort @ libc.so.6"));
	assert(same(frames_plain("", text, sizeof(text)), ""));
	assert(same(frames_plain(" ->  -> ", text, sizeof(text)), " ->  -> "));
	assert(same(frames_plain("a.c:1:function @ app", small, sizeof(small)), "a.c:1:f"));
}

UNIT(frames_of_our_own_are_recognised)
{
	assert(frames_is_reporting("ttmem_metal::Ledger::end(void const*)", "app"));
	assert(frames_is_reporting("void ttmem_metal::each<int>(int)", NULL));
	assert(frames_is_reporting("tt::tt_metal::GraphTracker::track_allocate(x)", "libtt.so"));
	assert(frames_is_reporting(NULL, "libttmem-metal.so"));
	assert(frames_is_reporting("std::map<int>::find", "libttmem-metal-2.so.1"));
	assert(!frames_is_reporting("load(ttmem_metal::Ledger &)", "app"));
	assert(!frames_is_reporting("my_ttmem_metal::load", "app"));
	assert(!frames_is_reporting("tt::tt_metal::Buffer::create", "libtt_metal.so"));
	assert(!frames_is_reporting("main", "libttmem-metal"));
	assert(!frames_is_reporting(NULL, NULL));
}

UNIT(unresolved_addresses_are_recognised)
{
	const struct frame address = {.function = "app+0x1f", .module = "app"};
	const struct frame named = {.function = "app", .module = "app"};
	const struct frame filed = {.function = "app+0x1", .module = "app", .file = "a.c"};

	assert(frames_is_address(&address));
	assert(!frames_is_address(&named) && !frames_is_address(&filed));
}

static bool calls(const char *stack, const char *expected)
{
	char text[256];

	return strcmp(frames_calls(stack, text, sizeof(text)), expected) == 0;
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

	assert(strcmp(frames_calls("a.py:3:f -> b.py:4:g", text, sizeof(text)), "b.py:g ") == 0);
}

UNIT(a_frame_without_a_name_has_the_build_id_of_its_module)
{
	static const char stack[] = "a.c:3:main @ app -> app+0x1f (build 0a1b) @ app -> x @ app";
	struct frames frames;
	struct frame frame;
	char text[128];

	frames_init(&frames, stack);
	assert(frames_next(&frames, &frame) && !frame.build_id);
	assert(frames_next(&frames, &frame) && strcmp(frame.build_id, "0a1b") == 0);
	assert(strcmp(frame.function, "app+0x1f") == 0 && strcmp(frame.module, "app") == 0);
	assert(frames_is_address(&frame));
	frames_deinit(&frames);
	/* A name that looks like it is a name. */
	frames_init(&frames,
		    "a.py:1:x (build 00) -> f (build 00) @ app -> app+0x1 (build g) @ app");
	assert(frames_next(&frames, &frame) && !frame.build_id);
	assert(frames_next(&frames, &frame) && strcmp(frame.function, "f (build 00)") == 0);
	assert(frames_next(&frames, &frame) && strcmp(frame.function, "x (build 00)") == 0);
	assert(!frame.build_id && !frames_next(&frames, &frame));
	frames_deinit(&frames);
	/* People need not see it. */
	assert(strcmp(frames_plain(stack, text, sizeof(text)),
		      "a.c:3:main -> app+0x1f -> x @ app") == 0);
	assert(strcmp(frames_calls(stack, text, sizeof(text)), "app:x <- app <- a.c:main") == 0);
}

/* The lines of a stack that is shown, joined by "|". */
static void check_folded(const char *stack, const char *expected)
{
	struct frames_fold fold = FRAMES_FOLD_NULL;
	struct frame frame, shown;
	struct frames frames;
	char text[512] = "";
	size_t length = 0;
	bool has_frame = true;

	frames_init(&frames, stack);
	while (has_frame) {
		has_frame = frames_next(&frames, &frame);
		if (!frames_fold_add(&fold, has_frame ? &frame : NULL, &shown))
			continue;
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s%s",
					   length ? "|" : "", shown.function ? shown.function : "?",
					   shown.is_cut ? "!" : "");
		assert(length < sizeof(text));
	}
	frames_deinit(&frames);
	assert(strcmp(text, expected) == 0);
}

UNIT(frames_of_a_module_without_names_are_shown_as_one)
{
	char plain[] = "m.py:1:f -> a.so+0x12 -> a.so+0x3f -> b.so+0x1 -> a.so+0x5 -> a.so+0x7 -> "
		       "a.so+0x9";
	char none[] = "m.py:1:f -> +0x1 -> a+0xg", empty[] = "";

	check_folded(
		"main @ app -> t.so+0x1 @ t.so -> t.so+0x2 @ t.so -> t.so+0x3 @ t.so -> f @ t.so",
		"f|t.so (3 frames)|main");
	check_folded("a.so+0x1 @ a.so -> t.so+0x2 @ t.so", "t.so+0x2|a.so+0x1");
	check_folded("t.so+0x1 (cut) @ t.so -> t.so+0x2 @ t.so", "t.so (2 frames)!");
	check_folded("", "");
	frames_fold_plain(plain);
	assert(strcmp(plain, "m.py:1:f -> a.so (2 frames) -> b.so+0x1 -> a.so (3 frames)") == 0);
	frames_fold_plain(none);
	frames_fold_plain(empty);
	assert(strcmp(none, "m.py:1:f -> +0x1 -> a+0xg") == 0 && strcmp(empty, "") == 0);
}
