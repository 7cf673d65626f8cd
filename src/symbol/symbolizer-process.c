/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One request, one answer. The files of the last requests stay open: the frames of a stack, and the
 * stacks of a process, need the same few files, and opening one with much debug information takes
 * long.
 */

#include "symbol/symbolizer-process.h"

#include <libelf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "symbol/demangle.h"
#include "symbol/jail.h"
#include "symbol/resolve.h"
#include "symbol/symbolizer-wire.h"
#include "symbol/symbolizer.h"

/* Identifies one version of a file. */
struct process_file {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
};

/* An open file. */
struct process_slot {
	int files[SYMBOLIZER_WIRE_FILES]; /* -1 = none */
	struct process_file kept[SYMBOLIZER_WIRE_FILES];
	struct resolve *resolve; /* NULL = the slot is free */
};

struct process {
	struct process_slot slots[SYMBOLIZER_FILES];
	size_t next; /* slot for the next file */
};

static void process_close(int files[SYMBOLIZER_WIRE_FILES])
{
	for (size_t i = 0; i < SYMBOLIZER_WIRE_FILES; i++) {
		if (files[i] >= 0)
			(void)close(files[i]); /* open for reading only */
		files[i] = -1;
	}
}

static void process_drop(struct process_slot *slot)
{
	slot->resolve = resolve_free(slot->resolve);
	process_close(slot->files);
}

static struct process_file process_file_of(int fd)
{
	struct process_file file;
	struct stat state;

	memset(&file, 0, sizeof(file)); /* including padding: they are compared as bytes */
	if (fd < 0 || fstat(fd, &state) < 0)
		return file;
	file.device = state.st_dev;
	file.inode = state.st_ino;
	file.size = state.st_size;
	file.changed.tv_sec = state.st_ctim.tv_sec;
	file.changed.tv_nsec = state.st_ctim.tv_nsec;
	return file;
}

/* The slot that has the file, perhaps without its debug information; else the oldest. */
static struct process_slot *process_slot_for(struct process *process,
					     const struct process_file *wanted)
{
	for (size_t i = 0; i < SYMBOLIZER_FILES; i++) {
		struct process_slot *slot = &process->slots[i];

		if (slot->resolve && memcmp(slot->kept, wanted, sizeof(*wanted)) == 0)
			return slot;
	}
	return &process->slots[process->next++ % SYMBOLIZER_FILES];
}

/* Always takes the descriptors. */
static int process_open_consume(struct process *process, int files[SYMBOLIZER_WIRE_FILES],
				struct resolve **ret_resolve)
{
	struct process_file wanted[SYMBOLIZER_WIRE_FILES] = {
		process_file_of(files[0]),
		process_file_of(files[1]),
	};
	struct process_slot *slot = process_slot_for(process, wanted);
	int r = 0;

	if (slot->resolve && memcmp(slot->kept, wanted, sizeof(wanted)) == 0) {
		process_close(files);
		*ret_resolve = slot->resolve;
		return 0;
	}
	process_drop(slot);
	memcpy(slot->files, files, sizeof(slot->files));
	memcpy(slot->kept, wanted, sizeof(wanted));
	r = resolve_new(&slot->resolve, files[0], files[1]);
	if (r < 0)
		process_drop(slot);
	else
		*ret_resolve = slot->resolve;
	return r;
}

/* Always takes the descriptors. */
static void process_find_consume(struct process *process, uint64_t address,
				 int files[SYMBOLIZER_WIRE_FILES],
				 struct symbolizer_wire_answer *answer)
{
	struct resolve *resolve = NULL;
	struct resolve_facts facts;

	answer->result = process_open_consume(process, files, &resolve);
	if (answer->result < 0)
		return;
	resolve_facts(resolve, &facts);
	answer->has_debug = facts.has_debug;
	answer->build_id_length = facts.build_id_length;
	memcpy(answer->build_id, facts.build_id, sizeof(answer->build_id));
	memcpy(answer->link, facts.link, sizeof(answer->link));
	answer->count =
		(uint32_t)resolve_find(resolve, address, answer->frames, RESOLVE_FRAMES_MAX);
}

static int process_serve(struct process *process, int socket)
{
	static struct symbolizer_wire_answer answer;
	struct symbolizer_wire_request request;
	int files[SYMBOLIZER_WIRE_FILES];
	int r = symbolizer_wire_hear(socket, &request, files);

	if (r < 0)
		return r;
	memset(&answer, 0, sizeof(answer));
	answer.magic = SYMBOLIZER_WIRE_MAGIC;
	answer.version = SYMBOLIZER_WIRE_VERSION;
	answer.kind = request.kind;
	answer.serial = request.serial;
	if (request.kind == SYMBOLIZER_WIRE_PROBE)
		answer.allowed = jail_probe();
	else if (request.kind == SYMBOLIZER_WIRE_FIND)
		process_find_consume(process, request.address, files, &answer);
	answer.size = symbolizer_wire_size(answer.count);
	if (request.kind == SYMBOLIZER_WIRE_DEMANGLE) {
		demangle_name(request.name, answer.text, sizeof(answer.text));
		answer.size += (uint32_t)strlen(answer.text) + 1;
	}
	return symbolizer_wire_tell(socket, &answer);
}

/* Triggers one-time initialization in the libraries that the filter would forbid later. */
static void process_warm_up(void)
{
	char text[16];

	(void)elf_version(EV_CURRENT); /* there is no other version */
	(void)sysconf(_SC_PHYS_PAGES); /* qsort() needs it */
	demangle_name("_Z1fv", text, sizeof(text));
}

bool symbolizer_process_is_meant(int argc, char *const *argv)
{
	return argc == 3 && strcmp(argv[1], SYMBOLIZER_PROCESS_ARGUMENT) == 0;
}

int symbolizer_process_main(int argc, char *const *argv)
{
	static struct process process;
	uint64_t socket;

	if (argc != 3 || text_parse_u64(argv[2], &socket) < 0 || socket > INT32_MAX)
		return EXIT_FAILURE;
	(void)prctl(PR_SET_NAME, SYMBOLIZER_PROCESS_NAME); /* only for display */
	for (size_t i = 0; i < SYMBOLIZER_FILES; i++)
		process.slots[i] = (struct process_slot){.files = {-1, -1}};
	process_warm_up();
	if (jail_enter() < 0)
		return EXIT_FAILURE;
	while (process_serve(&process, (int)socket) == 0)
		;
	_exit(EXIT_SUCCESS); /* no buffers to flush, no exit handlers to run */
}
