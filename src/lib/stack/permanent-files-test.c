/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/stack/permanent-files.h"

#undef NDEBUG
#include <assert.h>
#include <dlfcn.h>
#include <string.h>

#include "base/unit.h"
#include "lib/stack/image.h"
#include "lib/testing/testing-calls.h"

/* One file of the loader's list. */
struct lasting_question {
	const char *name; /* without folders; empty = the program */
	bool is_there;
	bool is_lasting;
	uintptr_t base;
};

static int lasting_see(struct dl_phdr_info *info, size_t size, void *context)
{
	struct lasting_question *question = context;
	bool is_lasting = lasting_meet(info);

	(void)size;
	if (strcmp(image_base(info->dlpi_name), question->name) == 0) {
		question->is_there = true;
		question->is_lasting = is_lasting;
		question->base = info->dlpi_addr;
	}
	return 0;
}

static struct lasting_question lasting_ask(const char *name)
{
	struct lasting_question question = {.name = name};

	lasting_begin();
	(void)dl_iterate_phdr(lasting_see, &question); /* returns what the callback returned: 0 */
	return question;
}

UNIT(files_loaded_with_the_program_are_permanent)
{
	static const char *const names[] = {"", "libc.so.6"};

	for (size_t i = 0; i < 2; i++) {
		struct lasting_question question = lasting_ask(names[i]);

		assert(question.is_there && question.is_lasting && lasting_knows(question.base));
	}
}

UNIT(files_loaded_later_may_be_unloaded)
{
	void *library = chain_load("unload-first-sha1.so");
	struct lasting_question question = lasting_ask("unload-first-sha1.so");

	assert(library && question.is_there && !question.is_lasting);
	assert(!lasting_knows(question.base));
	assert(dlclose(library) == 0);
}

/* It has the name of a library that the program needs, but that one is already loaded. */
UNIT(files_of_one_name_are_told_apart)
{
	void *library = chain_load("lasting-twin.so");
	struct lasting_question question = lasting_ask("lasting-twin.so");

	assert(library && question.is_there && !question.is_lasting);
	assert(lasting_ask("libc.so.6").is_lasting);
	assert(dlclose(library) == 0);
}

UNIT(files_marked_nodelete_are_permanent)
{
	void *library = chain_load("lasting-said.so");
	struct lasting_question question = lasting_ask("lasting-said.so");

	assert(library && question.is_there && question.is_lasting);
	assert(dlclose(library) == 0);
}
