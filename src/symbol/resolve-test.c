/* SPDX-License-Identifier: Apache-2.0 */

/* Names in real programs, with and without debug information, in one file and in two. */

#include "symbol/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "symbol/testing/symbol-testing.h"

static struct resolve_frame frames[RESOLVE_FRAMES_MAX];
static struct resolve_facts facts;

/* Finds a symbol of @with_symbols in file @name, whose debug information may be in another file. */
static size_t find(const char *name, const char *debug, const char *with_symbols,
		   const char *symbol)
{
	CLEANUP_CLOSE int fd = testing_open(name);
	CLEANUP_CLOSE int debug_fd = debug ? testing_open(debug) : -1;
	struct resolve *resolve = NULL;
	size_t count;

	assert(resolve_new(&resolve, fd, debug_fd) == 0);
	resolve_facts(resolve, &facts);
	count = resolve_find(resolve, testing_address(with_symbols, symbol), frames,
			     RESOLVE_FRAMES_MAX);
	assert(!resolve_free(resolve));
	return count;
}

static void assert_frame(size_t i, const char *function, const char *file, uint32_t line)
{
	size_t length = strlen(file);

	assert(strcmp(frames[i].function, function) == 0);
	assert(frames[i].line == line);
	assert(strlen(frames[i].file) >= length &&
	       strcmp(frames[i].file + strlen(frames[i].file) - length, file) == 0);
	assert(length == 0 || frames[i].file[0] == '/');
}

static void assert_all(const char *name, const char *debug, const char *with_symbols)
{
	assert(find(name, debug, with_symbols, "at_plain") == 1);
	assert_frame(0, "plain", "/program.c", TESTING_LINE_PLAIN);
	assert(find(name, debug, with_symbols, "at_hidden") == 1);
	assert_frame(0, "hidden", "/program.c", TESTING_LINE_HIDDEN);
	assert(find(name, debug, with_symbols, "at_inner") == 3);
	assert_frame(0, "inner", "/program.c", TESTING_LINE_INNER);
	assert_frame(1, "middle", "/program.c", TESTING_LINE_MIDDLE);
	assert_frame(2, "outer", "/program.c", TESTING_LINE_OUTER);
}

UNIT(position_independent_or_not)
{
	testing_sources();
	testing_run("gcc -g -O1 -pie -fPIE program.c -o pie");
	assert_all("pie", NULL, "pie");
	assert(facts.has_debug && facts.link[0] == 0);
	testing_run("gcc -g -O1 -no-pie -fno-pie program.c -o fixed");
	assert_all("fixed", NULL, "fixed");
	testing_run("gcc -g -O1 -shared -fPIC program.c -o library.so");
	assert_all("library.so", NULL, "library.so");
}

UNIT(half_of_the_debug_information_is_elsewhere)
{
	static const char *const versions[] = {"4", "5"};

	testing_sources();
	for (size_t i = 0; i < 2; i++) {
		testing_run("gcc -gdwarf-%s -gsplit-dwarf -O1 program.c -o split", versions[i]);
		/* The line would be that of the inlined function: so there is none. */
		assert(find("split", NULL, "split", "at_inner") == 1);
		assert_frame(0, "outer", "", 0);
	}
}

UNIT(older_and_packed_debug_information)
{
	testing_sources();
	testing_run("gcc -gdwarf-4 -O1 program.c -o old");
	assert_all("old", NULL, "old");
	testing_run("gcc -g -gz=zlib -O1 program.c -o packed");
	assert_all("packed", NULL, "packed");
	/* As other compilers leave it: no address index. */
	testing_run("objcopy -R .debug_aranges old bare");
	assert_all("bare", NULL, "bare");
}

UNIT(cxx_names_are_decoded)
{
	testing_sources();
	testing_run("g++ -g -O1 program.cc -o cxx && strip -g -o cxx-names cxx");
	assert(find("cxx", NULL, "cxx", "at_count") == 1);
	assert_frame(0,
		     "shop::shelf<long>::count(std::vector<long, std::allocator<long> > const&) "
		     "const",
		     "/program.cc", 5);
	assert(find("cxx-names", NULL, "cxx", "at_count") == 1);
	assert(!facts.has_debug &&
	       strncmp(frames[0].function, "shop::shelf<long>::count(", 25) == 0);
	assert_frame(0, frames[0].function, "", 0);
}

UNIT(names_without_debug_information_come_from_the_symbol_table)
{
	testing_sources();
	testing_run("gcc -g -O1 program.c -o whole && strip -g -o names whole");
	assert(find("names", NULL, "whole", "at_hidden") == 1);
	assert_frame(0, "hidden", "", 0);
	assert(find("names", NULL, "whole", "at_inner") == 1);
	assert_frame(0, "outer", "", 0);
	testing_run("strip -o nothing whole");
	assert(find("nothing", NULL, "whole", "at_hidden") == 0);
	/* Exported functions keep their names even then. */
	testing_run("gcc -g -O1 -shared -fPIC program.c -o whole.so && strip -o bare.so whole.so");
	assert(find("bare.so", NULL, "whole.so", "at_plain") == 1);
	assert_frame(0, "plain", "", 0);
}

/* As in code that was written by hand. */
UNIT(a_function_without_a_size_ends_where_the_next_one_begins)
{
	static const char code[] = ".globl first, last\n.type first, @function\n"
				   ".type last, @function\nfirst: nop\nat_first: nop\n"
				   "last: nop\nat_last: nop\nend:\n";

	testing_sources();
	testing_write("code.s", code, strlen(code));
	testing_run("gcc -no-pie program.c code.s -o sizeless");
	assert(find("sizeless", NULL, "sizeless", "at_first") == 1);
	assert_frame(0, "first", "", 0);
	assert(find("sizeless", NULL, "sizeless", "at_last") == 1);
	assert_frame(0, "last", "", 0);
}

UNIT(separate_file_by_build_id)
{
	testing_sources();
	testing_run("gcc -g -O1 -Wl,--build-id=sha1 program.c -o whole");
	testing_run("objcopy --only-keep-debug whole whole.debug && strip -o nothing whole");
	assert_all("nothing", "whole.debug", "whole");
	assert(!facts.has_debug && facts.build_id_length == 20);
	/* The debug file of another build is refused. */
	testing_run("gcc -g -O2 -Wl,--build-id=sha1 program.c -o other");
	testing_run("objcopy --only-keep-debug other other.debug");
	assert(find("nothing", "other.debug", "whole", "at_plain") == 0);
}

UNIT(separate_file_by_link)
{
	testing_sources();
	testing_run("gcc -g -O1 -Wl,--build-id=none program.c -o whole");
	testing_run("objcopy --only-keep-debug whole whole.debug && strip -o nothing whole");
	testing_run("objcopy --add-gnu-debuglink=whole.debug nothing linked");
	assert_all("linked", "whole.debug", "whole");
	assert(strcmp(facts.link, "whole.debug") == 0 && facts.build_id_length == 0);
	/*
	 * Without a link, or with another file behind it, nothing proves that they belong together.
	 */
	assert(find("nothing", "whole.debug", "whole", "at_plain") == 0);
	testing_run("cp whole.debug changed && printf x >>changed");
	assert(find("linked", "changed", "whole", "at_plain") == 0);
}

UNIT(addresses_outside_the_program_have_no_name)
{
	static const uint64_t addresses[] = {0, 1, 0x100, UINT64_C(1) << 40, UINT64_MAX};
	CLEANUP_CLOSE int fd = -1;
	struct resolve *resolve;

	testing_sources();
	testing_run("gcc -g -O1 program.c -o program");
	fd = testing_open("program");
	assert(resolve_new(&resolve, fd, -1) == 0);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		assert(resolve_find(resolve, addresses[i], frames, RESOLVE_FRAMES_MAX) == 0);
	assert(resolve_find(resolve, testing_address("program", "plain"), frames, 0) == 0);
	/* The innermost frames are kept. */
	assert(resolve_find(resolve, testing_address("program", "at_inner"), frames, 2) == 2);
	assert_frame(0, "inner", "/program.c", TESTING_LINE_INNER);
	assert_frame(1, "middle", "/program.c", TESTING_LINE_MIDDLE);
	resolve_free(resolve);
}

static int outcome(const char *name)
{
	CLEANUP_CLOSE int fd = open(testing_path(name), O_RDWR | O_NONBLOCK | O_CLOEXEC);
	CLEANUP_CLOSE int folder = fd < 0 ? testing_open(name) : -1;
	struct resolve *resolve;
	int r = resolve_new(&resolve, fd < 0 ? folder : fd, -1);

	if (r == 0)
		resolve_free(resolve);
	return r;
}

UNIT(files_that_are_no_program_are_refused)
{
	testing_sources();
	testing_run("gcc -c program.c -o object.o && ar rc archive.a object.o");
	testing_run("mkfifo fifo && : >empty && mkdir folder && truncate -s 5G large");
	assert(outcome("program.c") == -EINVAL);
	assert(outcome("object.o") == -EINVAL);
	assert(outcome("archive.a") == -EINVAL);
	assert(outcome("fifo") == -EINVAL);
	assert(outcome("empty") == -EINVAL);
	assert(outcome("folder") == -EINVAL);
	assert(outcome("large") == -EFBIG);
}
