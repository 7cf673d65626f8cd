/* SPDX-License-Identifier: Apache-2.0 */

/* Texts of call sites in a list. Stacks are written outermost first. */

#include "model/sites/site-rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"

#define ROWS_MAX 8u

/* A list and the texts of its rows; the first NULL ends both. */
static void check_list(const char *const stacks[ROWS_MAX], const char *const texts[ROWS_MAX])
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;

	for (size_t i = 0; i < ROWS_MAX && stacks[i]; i++)
		site_rows_add_stack(&rows, testing_stack(stacks[i]));
	site_rows_finish(&rows);
	for (size_t i = 0; i < ROWS_MAX && stacks[i]; i++) {
		if (strcmp(site_rows_text(&rows, i), texts[i]) != 0) {
			fprintf(stderr, "%s\n  gives %s\n  not   %s\n", stacks[i],
				site_rows_text(&rows, i), texts[i]);
			abort();
		}
	}
}

#define CHECK(stack, text) \
	check_list((const char *const[ROWS_MAX]){stack}, (const char *const[ROWS_MAX]){text})

#define TORCH "/v/lib/python3.11/site-packages/torch/"

UNIT(a_row_shows_the_users_line_and_what_it_called)
{
	CHECK("/w/train.py:7:make_model -> " TORCH "nn/modules/module.py:1097:cuda -> " TORCH
	      "nn/modules/module.py:930:_apply -> " TORCH "nn/modules/module.py:1097:<lambda>",
	      "make_model (train.py:7) → cuda (torch/…/module.py:1097)");
	CHECK("train.py:7:f -> /usr/lib/python3/dist-packages/six.py:3:g",
	      "f (train.py:7) → g (six.py:3)");
	CHECK("train.py:7:f -> " TORCH "functional.py:3:g",
	      "f (train.py:7) → g (torch/functional.py:3)");
	CHECK("m.py:7:step -> /x/tt-metal/ttnn/ttnn/decorators.py:300:__call__ -> "
	      "ttnn::operations::creation::zeros(int) @ _ttnn.so",
	      "step (m.py:7) → ttnn::operations::creation::zeros (_ttnn.so)");
	CHECK("/x/app.c:3:main @ app -> /x/app.c:9:make @ app -> ttmem_alloc @ libttmem.so.0",
	      "make (app.c:9)");
}

UNIT(without_a_line_of_the_user_the_site_is_shown)
{
	CHECK("<frozen runpy>:198:_run_module_as_main -> " TORCH "distributed/run.py:9:main",
	      "main (run.py:9)");
	CHECK("app+0x11 @ app -> app+0x22 @ app", "app+0x22");
	CHECK("", "");
}

UNIT(rows_that_share_a_frame_show_the_callers_in_which_they_differ)
{
	static const char *const stacks[ROWS_MAX] = {
		"a.c:30:main @ app -> a.c:20:scratch @ app -> a.c:11:dram @ app",
		"a.c:31:main @ app -> a.c:24:weights @ app -> a.c:11:dram @ app",
		"a.c:32:main @ app -> a.c:12:dram @ app",
	};
	static const char *const texts[ROWS_MAX] = {
		"scratch ← dram (a.c:11)",
		"weights ← dram (a.c:11)",
		"dram (a.c:12)",
	};

	check_list(stacks, texts);
}

UNIT(callers_that_are_the_same_are_left_out_up_to_the_first_that_differ)
{
	static const char *const stacks[ROWS_MAX] = {
		"a.c:30:main @ app -> a.c:20:scratch @ app -> a.c:5:make @ app -> a.c:11:dram @ "
		"app",
		"a.c:31:main @ app -> a.c:24:weights @ app -> a.c:5:make @ app -> a.c:11:dram @ "
		"app",
		"a.c:32:main @ app -> a.c:24:weights @ app -> a.c:5:make @ app -> a.c:11:dram @ "
		"app",
		"a.c:33:main @ app -> a.c:11:dram @ app -> a.c:11:dram @ app",
	};
	static const char *const texts[ROWS_MAX] = {
		"scratch ← make ← dram (a.c:11)",
		"main (a.c:31) ← weights ← make ← dram (a.c:11)",
		"main (a.c:32) ← weights ← make ← dram (a.c:11)",
		"main ← dram (a.c:11)",
	};

	check_list(stacks, texts);
	check_list((const char *const[ROWS_MAX]){stacks[0], stacks[1]},
		   (const char *const[ROWS_MAX]){"scratch ← … ← dram (a.c:11)",
						 "weights ← … ← dram (a.c:11)"});
}

UNIT(a_caller_has_its_line_where_its_name_is_not_enough)
{
	static const char *const stacks[ROWS_MAX] = {
		"a.c:30:main @ app -> a.c:11:dram @ app",
		"a.c:31:main @ app -> a.c:11:dram @ app",
	};
	static const char *const texts[ROWS_MAX] = {
		"main (a.c:30) ← dram (a.c:11)",
		"main (a.c:31) ← dram (a.c:11)",
	};

	check_list(stacks, texts);
}

UNIT(rows_that_differ_in_installed_code_alone_show_it)
{
	static const char *const stacks[ROWS_MAX] = {
		"t.py:9:train -> " TORCH "optim/adam.py:200:step -> " TORCH
		"optim/adam.py:178:_init_group",
		"t.py:9:train -> " TORCH "optim/adam.py:200:step -> " TORCH
		"optim/adam.py:182:_init_group",
	};
	static const char *const texts[ROWS_MAX] = {
		"train (t.py:9) → step (torch/…/adam.py:200) → … → _init_group "
		"(torch/…/adam.py:178)",
		"train (t.py:9) → step (torch/…/adam.py:200) → … → _init_group "
		"(torch/…/adam.py:182)",
	};

	check_list(stacks, texts);
}

UNIT(signatures_are_short_unless_that_is_ambiguous)
{
	static const char *const stacks[ROWS_MAX] = {
		"a.cc:5:main @ app -> std::vector<int> app::make<float>(int) @ app",
		"a.cc:5:main @ app -> std::vector<int> app::make<int>(int) @ app",
	};

	CHECK("b.cc:6:std::vector<int> app::make<std::string>(int) @ app", "app::make (b.cc:6)");
	CHECK("b.cc:6:(anonymous namespace)::fill(int) const @ app",
	      "(anonymous namespace)::fill (b.cc:6)");
	CHECK("b.cc:6:T::operator<<(int) @ app", "T::operator<< (b.cc:6)");
	CHECK("b.cc:6:main::{lambda(int)#1}::operator()(int) const @ app",
	      "main::{lambda(int)#1}::operator() (b.cc:6)");
	CHECK("m.py:6:<lambda>", "<lambda> (m.py:6)");
	CHECK("m.go:6:main.(*T).Make @ app", "main.(*T).Make (m.go:6)");
	CHECK("./app(main+0x1f) [0x5500]", "./app(main+0x1f) [0x5500]");
	check_list(stacks, (const char *const[ROWS_MAX]){
				   "main (a.cc:5) → std::vector<int> app::make<float>(int) (app)",
				   "main (a.cc:5) → std::vector<int> app::make<int>(int) (app)",
			   });
	check_list((const char *const[ROWS_MAX]){"/a/m.py:6:f", "/b/m.py:6:f"},
		   (const char *const[ROWS_MAX]){"f (/a/m.py:6)", "f (/b/m.py:6)"});
}

UNIT(the_place_of_a_row_is_the_caller_that_it_shows)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;

	site_rows_add_stack(
		&rows,
		testing_stack("a.c:30:main @ app -> a.c:20:scratch @ app -> a.c:11:dram @ app"));
	site_rows_add_stack(
		&rows,
		testing_stack("a.c:31:main @ app -> a.c:24:weights @ app -> a.c:11:dram @ app"));
	site_rows_add_stack(&rows,
			    testing_stack("t.py:9:train -> " TORCH "optim/adam.py:200:step"));
	site_rows_add_stack(&rows, NULL);
	site_rows_finish(&rows);
	assert(site_rows_place(&rows, 0)->line == 20 && site_rows_place(&rows, 1)->line == 24);
	assert(site_rows_place(&rows, 2)->line == 9 && !site_rows_place(&rows, 3));
	assert(!site_rows_place(&rows, 4) && strcmp(site_rows_text(&rows, 4), "") == 0);
}

UNIT(an_allocator_that_most_rows_share_is_named_once)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL, few = SITE_ROWS_NULL;
	char text[64];

	site_rows_add_stack(&few, testing_stack("a.c:1:a @ app -> a.c:11:dram(int) @ app"));
	site_rows_add_stack(&few, testing_stack("a.c:2:b @ app -> a.c:11:dram(int) @ app"));
	site_rows_finish(&few);
	assert(!site_rows_wrapper(&few, text, sizeof(text)));
	site_rows_add_stack(&rows, testing_stack("a.c:1:a @ app -> a.c:11:dram(int) @ app"));
	site_rows_add_stack(&rows, testing_stack("a.c:9:other @ app"));
	site_rows_add_stack(&rows, testing_stack("a.c:2:b @ app -> a.c:11:dram(int) @ app"));
	site_rows_add_stack(&rows, testing_stack("a.c:8:another @ app"));
	site_rows_add_stack(&rows, testing_stack("a.c:3:c @ app -> a.c:11:dram(int) @ app"));
	site_rows_finish(&rows);
	assert(strcmp(site_rows_wrapper(&rows, text, sizeof(text)), "dram") == 0);
}
