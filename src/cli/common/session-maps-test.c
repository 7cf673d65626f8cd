/* SPDX-License-Identifier: Apache-2.0 */

/* The lines about a memory, with as many holders as wanted. */

#include "cli/common/session-maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/types.h"

#define HOLDERS 7

static struct snapshot_process processes[HOLDERS];
static struct snapshot_device device = {.device = 3};
static struct memory_holder holders[HOLDERS];
static struct memory_shared shared = {
	.device = &device,
	.all = {.free = 5 << 10, .banks = 4},
	.holders = holders,
};
static struct space space = {
	.process = &processes[1],
	.device = &device,
	.type = TYPES_L1,
	.shared = &shared,
};

/* What @fn prints about the memory. */
static const char *print(void (*fn)(const struct space *space), size_t count)
{
	static char text[4096];
	int terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	int file = open(unit_path("printed"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t got;

	for (size_t i = 0; i < HOLDERS; i++) {
		processes[i] =
			(struct snapshot_process){.id.pid = 10 + (uint32_t)i, .comm = "train"};
		holders[i] = (struct memory_holder){.process = &processes[i], .bytes = 1024};
	}
	shared.count = count;
	assert(fflush(stdout) == 0 && dup2(file, STDOUT_FILENO) == STDOUT_FILENO);
	fn(&space);
	assert(fflush(stdout) == 0 && dup2(terminal, STDOUT_FILENO) == STDOUT_FILENO);
	got = pread(file, text, sizeof(text) - 1, 0);
	assert(got >= 0 && close(file) == 0 && close(terminal) == 0);
	text[got] = '\0';
	return text;
}

UNIT(the_title_names_process_device_and_type)
{
	assert(strcmp(print(session_spaces_print_title, 0), "pid 11 (train), device 3, L1") == 0);
	device.remote = true;
	assert(strcmp(print(session_spaces_print_title, 0), "pid 11 (train), device 3R, L1") == 0);
}

UNIT(other_holders_are_listed_without_the_process_itself)
{
	const char *text = print(session_spaces_print_others, 3);

	assert(strcmp(text,
		      "  on this device also: pid 10 (train) 1.0 KiB, pid 12 (train) 1.0 KiB\n"
		      "  all processes together: 5.0 KiB free in each bank (20.0 KiB over all "
		      "banks)\n") == 0);
	space.shared = NULL;
	assert(strcmp(print(session_spaces_print_others, 3), "") == 0);
}

UNIT(four_other_holders_are_shown)
{
	const char *text = print(session_spaces_print_others, 5);

	assert(strstr(text, "pid 14 (train) 1.0 KiB\n") && !strstr(text, "others"));
	text = print(session_spaces_print_others, 6);
	assert(strstr(text, "pid 14 (train) 1.0 KiB, and others\n") && !strstr(text, "pid 15"));
	text = print(session_spaces_print_others, 7);
	assert(strstr(text, "pid 14 (train) 1.0 KiB, and others\n") && !strstr(text, "pid 15"));
}

UNIT(what_is_not_placed_is_not_free)
{
	shared.unplaced = 1 << 10;
	assert(strstr(print(session_spaces_print_others, 2),
		      ": 4.0 KiB free in each bank (16.0 KiB over all banks), at most: not all are "
		      "tracked\n"));
	shared.unplaced = 6 << 10;
	assert(strstr(print(session_spaces_print_others, 2), ": 0 B free in each bank (0 B over"));
}

UNIT(what_blocks_take_is_shown_if_it_is_known)
{
	assert(strcmp(print(session_spaces_print_occupied, 0), "") == 0);
	space.free_blocks.block_count = 2;
	space.free_blocks.occupied = 2048;
	space.free_blocks.occupied_known = 1;
	assert(strcmp(print(session_spaces_print_occupied, 0), "") == 0);
	space.free_blocks.occupied_known = 2;
	assert(strcmp(print(session_spaces_print_occupied, 0),
		      "  over all banks its blocks take 2.0 KiB\n") == 0);
}
