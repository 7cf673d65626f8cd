/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/stack/permanent-files.h"

#undef NDEBUG
#include <assert.h>
#include <dlfcn.h>
#include <string.h>

#include "base/testing/unit.h"
#include "lib/stack/image.h"
#include "lib/testing/testing-calls.h"

/* One file of the loader's list. */
struct permanent_files_question {
	const char *name; /* without folders; empty = the program */
	bool is_there;
	bool is_lasting;
	uintptr_t base;
};

static int permanent_files_see(struct dl_phdr_info *info, size_t size, void *context)
{
	struct permanent_files_question *question = context;
	bool is_lasting = permanent_files_meet(info);

	(void)size;
	if (strcmp(image_base(info->dlpi_name), question->name) == 0) {
		question->is_there = true;
		question->is_lasting = is_lasting;
		question->base = info->dlpi_addr;
	}
	return 0;
}

static struct permanent_files_question permanent_files_ask(const char *name)
{
	struct permanent_files_question question = {.name = name};

	permanent_files_begin();
	(void)dl_iterate_phdr(permanent_files_see,
			      &question); /* returns what the callback returned: 0 */
	return question;
}

UNIT(files_loaded_with_the_program_are_permanent)
{
	static const char *const names[] = {"", "libc.so.6"};

	for (size_t i = 0; i < 2; i++) {
		struct permanent_files_question question = permanent_files_ask(names[i]);

		assert(question.is_there && question.is_lasting &&
		       permanent_files_knows(question.base));
	}
}

UNIT(files_loaded_later_may_be_unloaded)
{
	void *library = calls_load("unload-first-sha1.so");
	struct permanent_files_question question = permanent_files_ask("unload-first-sha1.so");

	assert(library && question.is_there && !question.is_lasting);
	assert(!permanent_files_knows(question.base));
	assert(dlclose(library) == 0);
}

/* It has the name of a library that the program needs, but that one is already loaded. */
UNIT(files_of_one_name_are_told_apart)
{
	void *library = calls_load("lasting-twin.so");
	struct permanent_files_question question = permanent_files_ask("lasting-twin.so");

	assert(library && question.is_there && !question.is_lasting);
	assert(permanent_files_ask("libc.so.6").is_lasting);
	assert(dlclose(library) == 0);
}

UNIT(files_marked_nodelete_are_permanent)
{
	void *library = calls_load("lasting-said.so");
	struct permanent_files_question question = permanent_files_ask("lasting-said.so");

	assert(library && question.is_there && question.is_lasting);
	assert(dlclose(library) == 0);
}
