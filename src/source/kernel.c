/* SPDX-License-Identifier: Apache-2.0 */

/* Reading what the kernel module tells, and adding what nobody else has told. */

#include "source/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uapi/ttmem.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/clock.h"
#include "core/snapshot.h"
#include "source/proc.h"

#define KERNEL_FOLDER "driver/ttmem"
#define KERNEL_FILE KERNEL_FOLDER "/totals"
#define KERNEL_VERSION "ttmem 1\n"
#define KERNEL_STEP 65536u

/* The words of a line, one after the other. */
struct kernel_line {
	const char *at, *end;
};

/* The next word; of length 0 at the end of the line. */
static size_t kernel_word(struct kernel_line *line, const char **ret_word)
{
	while (line->at < line->end && *line->at == ' ')
		line->at++;
	*ret_word = line->at;
	while (line->at < line->end && *line->at != ' ')
		line->at++;
	return (size_t)(line->at - *ret_word);
}

static bool kernel_word_is(struct kernel_line *line, const char *text)
{
	const char *word;
	size_t length = kernel_word(line, &word);

	return length == strlen(text) && memcmp(word, text, length) == 0;
}

/* Digits and nothing else, up to @max. */
static bool kernel_number(struct kernel_line *line, uint64_t max, uint64_t *ret_number)
{
	const char *word;
	size_t length = kernel_word(line, &word);
	uint64_t number = 0;

	if (length == 0)
		return false;
	for (size_t i = 0; i < length; i++) {
		uint64_t digit = (uint64_t)word[i] - '0';

		if (digit > 9 || number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return number <= max;
}

/* The text has no end of its own, so only these three are looked at. */
static bool kernel_is_octal(const char *digits)
{
	for (size_t i = 0; i < 3; i++) {
		if (digits[i] < '0' || digits[i] > '7')
			return false;
	}
	return true;
}

/* What is not printable comes as a backslash and three octal digits. */
static void kernel_comm(struct kernel_line *line, char ret_comm[KERNEL_COMM_SIZE])
{
	const char *word;
	size_t length = kernel_word(line, &word);
	size_t n = 0;

	for (size_t i = 0; i < length && n < KERNEL_COMM_SIZE - 1; i++) {
		const char *digits = word + i + 1;

		if (word[i] == '\\' && length - i > 3 && kernel_is_octal(digits)) {
			ret_comm[n++] = (char)((digits[0] - '0') << 6 | (digits[1] - '0') << 3 |
					       (digits[2] - '0'));
			i += 3;
		} else {
			ret_comm[n++] = word[i];
		}
	}
	ret_comm[n] = '\0';
}

static int kernel_parse_holder(struct kernel_line *line, const struct kernel_parser *parser)
{
	struct kernel_holder holder = {0};
	uint64_t device, pid, uid;
	const char *kind;
	size_t length;

	if (!kernel_number(line, UINT64_MAX, &holder.id))
		return -EBADMSG;
	length = kernel_word(line, &kind);
	holder.is_book = length == 4 && memcmp(kind, "book", 4) == 0;
	if (!kernel_number(line, UINT32_MAX, &device) || !kernel_number(line, INT32_MAX, &pid) ||
	    !kernel_number(line, UINT32_MAX, &uid))
		return -EBADMSG;
	holder.device = (dev_t)device;
	holder.pid = (uint32_t)pid;
	holder.uid = (uint32_t)uid;
	kernel_comm(line, holder.comm);
	holder.is_gone = kernel_word_is(line, "gone");
	return parser->holder(parser->context, &holder);
}

static int kernel_parse_memory(struct kernel_line *line, const struct kernel_parser *parser)
{
	struct snapshot_memory memory = {0};
	uint64_t device, type, bound;

	if (!kernel_number(line, BOOK_DEVICES - 1, &device) ||
	    !kernel_number(line, BOOK_TYPES - 1, &type) ||
	    !kernel_number(line, UINT64_MAX, &memory.used) ||
	    !kernel_number(line, UINT64_MAX, &memory.buffers) ||
	    !kernel_number(line, UINT64_MAX, &memory.peak) ||
	    !kernel_number(line, UINT64_MAX, &memory.allocs) ||
	    !kernel_number(line, UINT64_MAX, &memory.frees) ||
	    !kernel_number(line, SNAPSHOT_AT_MOST, &bound))
		return -EBADMSG;
	memory.bound = (uint32_t)bound;
	return parser->memory(parser->context, (uint32_t)device, (uint32_t)type, &memory);
}

int kernel_parse(const char *text, size_t length, const struct kernel_parser *parser)
{
	size_t version = strlen(KERNEL_VERSION);
	const char *end = text + length;
	bool has_holder = false;
	int r = 0;

	if (length < version || memcmp(text, KERNEL_VERSION, version) != 0)
		return -EBADMSG;
	for (text += version; r == 0 && text < end;) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct kernel_line line = {.at = text, .end = newline};
		struct kernel_line again = line;

		if (!newline)
			return -EBADMSG;
		if (kernel_word_is(&line, "holder")) {
			r = kernel_parse_holder(&line, parser);
			has_holder = true;
		} else if (kernel_word_is(&again, "memory")) {
			r = has_holder ? kernel_parse_memory(&again, parser) : -EBADMSG;
		}
		text = newline + 1;
	}
	return r;
}

/* All of the file. 0, -ENOENT, -EFBIG or another negative errno. */
static int kernel_slurp(const struct proc *proc, char **ret_text, size_t *ret_length)
{
	CLEANUP_CLOSE int fd = openat(proc->root, KERNEL_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	CLEANUP_FREE char *text = NULL;
	size_t length = 0, room = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (n > 0) {
		if (room - length < KERNEL_STEP) {
			char *more = NULL;

			room = room * 2 + KERNEL_STEP;
			if (room > KERNEL_TEXT_MAX)
				return -EFBIG;
			more = realloc(text, room);
			if (!more)
				return -ENOMEM;
			text = more;
		}
		n = read(fd, text + length, room - length);
		if (n < 0)
			return -errno;
		length += (size_t)n;
	}
	*ret_text = cleanup_steal(text);
	*ret_length = length;
	return 0;
}

int kernel_read(const struct proc *proc, const struct kernel_parser *parser)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	int r = kernel_slurp(proc, &text, &length);

	return r < 0 ? r : kernel_parse(text, length, parser);
}

struct kernel_collecting {
	const struct proc *proc;
	kernel_knows_fn *knows;
	const void *context;
	struct snapshot *snapshot;
	size_t outside; /* holders that have no pid here */
	size_t gone;    /* holders whose process has ended, and what they have */
	struct snapshot_memory gone_memory;
	bool is_gone; /* this and all that follows: of the holder whose lines come now */
	bool wanted;
	uint32_t process;
};

static int kernel_collect_holder(void *context, const struct kernel_holder *holder)
{
	struct kernel_collecting *collecting = context;
	struct snapshot *snapshot = collecting->snapshot;
	struct proc_facts facts = {.ns_pid = holder->pid, .real_uid = holder->uid};
	struct snapshot_process process = {.pid = holder->pid, .alive = true, .exact = true};
	char user[64];
	bool is_known;
	int r;

	is_known = holder->is_book && (holder->pid || holder->is_gone) &&
		   collecting->knows(collecting->context, holder);
	collecting->is_gone = holder->pid == 0 && holder->is_gone && !is_known;
	collecting->gone += collecting->is_gone;
	collecting->outside += holder->pid == 0 && !holder->is_gone;
	collecting->wanted = holder->pid != 0 && !is_known;
	if (!collecting->wanted)
		return 0;
	/* It may have ended since, or not be for us to see; the kernel's word for it will do. */
	(void)proc_read(collecting->proc, holder->pid, &facts);
	proc_user_name(facts.real_uid, user, sizeof(user));
	process.ns_pid = facts.ns_pid;
	process.start_ticks = facts.start_ticks;
	process.start_ns = proc_start_ns(facts.start_ticks, clock_ns(CLOCK_BOOTTIME),
					 clock_ns(CLOCK_REALTIME));
	process.user_id = facts.real_uid;
	process.maker_id = holder->uid;
	process.source = "kernel";
	process.comm = snapshot_text(snapshot, holder->comm, strlen(holder->comm));
	process.user = snapshot_text(snapshot, user, strlen(user));
	if (!process.comm || !process.user)
		return -ENOMEM;
	r = snapshot_add_process(snapshot, &process, &collecting->process);
	if (r == 0)
		snapshot->processes[collecting->process].books--; /* none was read */
	return r;
}

static int kernel_collect_memory(void *context, uint32_t device, uint32_t type,
				 const struct snapshot_memory *memory)
{
	struct kernel_collecting *collecting = context;
	struct snapshot_part *part;

	if (collecting->is_gone)
		snapshot_add_memory(&collecting->gone_memory, memory);
	if (!collecting->wanted)
		return 0;
	part = snapshot_part(collecting->snapshot, collecting->process, device);
	if (!part)
		return -ENOMEM;
	snapshot_add_memory(&part->memory[type], memory);
	return 0;
}

int kernel_collect(const struct proc *proc, kernel_knows_fn *knows, const void *context,
		   struct snapshot *snapshot)
{
	struct kernel_collecting collecting = {
		.proc = proc, .knows = knows, .context = context, .snapshot = snapshot};
	struct kernel_parser parser = {
		.holder = kernel_collect_holder,
		.memory = kernel_collect_memory,
		.context = &collecting,
	};
	int r = kernel_read(proc, &parser);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		snapshot_note(snapshot, "what the kernel module tells cannot be read: %s",
			      strerror(-r)); /* NOLINT(concurrency-mt-unsafe): known numbers */
	if (collecting.outside)
		snapshot_note(snapshot, "%zu processes outside this container are not shown",
			      collecting.outside);
	if (collecting.gone)
		snapshot_note(snapshot,
			      "%" PRIu64 " bytes of %zu processes that have ended are not shown: "
			      "others keep what those had opened",
			      collecting.gone_memory.used, collecting.gone);
	return 0;
}

enum kernel_state kernel_look(const struct proc *proc, const char *node)
{
	struct stat st;

	if (!node)
		node = TTMEM_NODE;
	if (fstatat(proc->root, KERNEL_FOLDER, &st, 0) < 0)
		return KERNEL_NOT_LOADED;
	if (stat(node, &st) < 0 || !S_ISCHR(st.st_mode))
		return KERNEL_NO_NODE;
	return access(node, R_OK | W_OK) < 0 ? KERNEL_NO_RIGHTS : KERNEL_READY;
}

const char *kernel_explain(enum kernel_state state)
{
	switch (state) {
	case KERNEL_NOT_LOADED:
		return "the kernel module is not loaded; processes are tracked where TTMEM=1 is "
		       "set";
	case KERNEL_NO_NODE:
		return "the kernel module is loaded, but /dev/ttmem is not there; in a container "
		       "it must "
		       "be handed in";
	case KERNEL_NO_RIGHTS:
		return "the kernel module is loaded, but this user may not open /dev/ttmem; see "
		       "its udev "
		       "rule";
	case KERNEL_READY:
		return "the kernel module is loaded: every process with the library is tracked";
	}
	return "";
}
