/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls libunwind. Declared here is its interface for remote unwinding as in every version with
 * soname 8; whether the installed one matches is tested before it is used.
 */

#include "lib/stack/unwind.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/bits.h"
#include "lib/api/debug.h"
#include "lib/process/linked.h"
#include "lib/stack/loader-thread.h"

static enum unwind_state unwind_is_there; /* returned by unwind_state() */

enum unwind_state unwind_state(void)
{
	return __atomic_load_n(&unwind_is_there, __ATOMIC_ACQUIRE);
}

static void unwind_become(enum unwind_state state)
{
	__atomic_store_n(&unwind_is_there, state, __ATOMIC_RELEASE);
}

void unwind_give_up(void)
{
	unwind_become(UNWIND_LOST);
}

#if defined(__x86_64__)

#define UNWIND_NAME "libunwind-x86_64.so.8"
#define UNWIND_CURSOR 192u /* words; 127 are used */
#define UNWIND_READS 32u   /* of the stack, in one step: restored registers */
#define UNWIND_PARTS 16u   /* of a file in memory; any more are ignored */
#define UNWIND_ERROR (-1)

/* libunwind's constants. */
#define UNWIND_CACHE_NONE 0
#define UNWIND_REMOTE_TABLE 2
#define UNWIND_RBP 6
#define UNWIND_RSP 7
#define UNWIND_RIP 16

/*
 * Register values of an artificial frame. What is read from its stack is artificial too: the first
 * value read is UNWIND_READ, the next one UNWIND_READ_STEP more. Any sum of one of these and an
 * offset shows what it was computed from.
 */
#define UNWIND_MIDDLE (UINT64_C(1) << 40)
#define UNWIND_SP (UINT64_C(1) << 60 | UNWIND_MIDDLE)
#define UNWIND_FP (UINT64_C(2) << 60 | UNWIND_MIDDLE)
#define UNWIND_OTHER (UINT64_C(3) << 60 | UNWIND_MIDDLE)
#define UNWIND_READ (UINT64_C(4) << 60 | UNWIND_MIDDLE)
#define UNWIND_READ_STEP (UINT64_C(1) << 44)
#define UNWIND_RANGE(value) ((value) >> 60)

struct unwind_accessors {
	int (*find_proc_info)(void *space, uint64_t ip, void *info, int need, void *context);
	void (*put_unwind_info)(void *space, void *info, void *context);
	int (*get_dyn_info_list_addr)(void *space, uint64_t *ret_list, void *context);
	int (*access_mem)(void *space, uint64_t address, uint64_t *value, int write, void *context);
	int (*access_reg)(void *space, int number, uint64_t *value, int write, void *context);
	int (*access_fpreg)(void *space, int number, void *value, int write, void *context);
	int (*resume)(void *space, void *cursor, void *context);
	int (*get_proc_name)(void *space, uint64_t ip, char *text, size_t length,
			     uint64_t *ret_offset, void *context);
	void *later[16]; /* newer versions copy more */
};

static struct {
	void *(*create)(struct unwind_accessors *accessors, int byte_order);
	int (*set_caching)(void *space, int policy);
	int (*init_remote)(void *cursor, void *space, void *context);
	int (*step)(void *cursor);
	int (*get_reg)(void *cursor, int number, uint64_t *ret_value);
	int (*search)(void *space, uint64_t ip, void *table, void *info, int need, void *context);
	void *space;
	bool is_old; /* before 1.6 the description of a table was a word shorter */
} unwind;

/* One query. */
struct unwind_probe {
	uint64_t ip;
	struct linked_file file;
	struct {
		uintptr_t low;
		uintptr_t high;
	} parts[UNWIND_PARTS]; /* the readable parts of the file */
	size_t part_count;
	uint64_t reads[UNWIND_READS]; /* addresses of the artificial stack */
	size_t read_count;
	bool has_tables;
};

/* The start of .eh_frame_hdr, in the one form that linkers write. */
struct unwind_head {
	uint8_t version;
	uint8_t pointer_form;
	uint8_t count_form;
	uint8_t table_form;
	int32_t pointer;
	uint32_t count;
};

static bool unwind_holds(const struct unwind_probe *probe, uint64_t address, uint64_t length)
{
	for (size_t i = 0; i < probe->part_count; i++) {
		if (address >= probe->parts[i].low && address < probe->parts[i].high &&
		    probe->parts[i].high - address >= length)
			return true;
	}
	return false;
}

static int unwind_find_proc_info(void *space, uint64_t ip, void *info, int need, void *context)
{
	struct unwind_probe *probe = context;
	uint64_t at = (uintptr_t)probe->file.tables;
	const struct unwind_head *head = probe->file.tables;
	/* Two links, first and last address, gp, format, (load offset,) name, base, length, data */
	uint64_t table[16] = {
		[2] = probe->file.low,
		[3] = probe->file.high,
		[5] = UNWIND_REMOTE_TABLE,
	};
	uint64_t *rest = &table[unwind.is_old ? 6 : 7];

	if (ip != probe->ip || ip < table[2] || ip >= table[3])
		return UNWIND_ERROR;
	if (!unwind_holds(probe, at, sizeof(*head)) || head->version != 1 ||
	    head->pointer_form != 0x1b || head->count_form != 0x03 || head->table_form != 0x3b ||
	    !unwind_holds(probe, at, sizeof(*head) + head->count * UINT64_C(8)))
		return UNWIND_ERROR;
	rest[1] = at;
	rest[2] = head->count;
	rest[3] = at + sizeof(*head);
	if (unwind.search(space, ip, table, info, need, context) < 0)
		return UNWIND_ERROR;
	probe->has_tables = true;
	return 0;
}

static void unwind_put_unwind_info(void *space, void *info, void *context)
{
	(void)space;
	(void)info;
	(void)context;
}

static int unwind_no_list(void *space, uint64_t *ret_list, void *context)
{
	(void)space;
	(void)ret_list;
	(void)context;
	return UNWIND_ERROR;
}

static int unwind_read_stack(struct unwind_probe *probe, uint64_t address, uint64_t *ret_value)
{
	size_t i = 0;

	while (i < probe->read_count && probe->reads[i] != address)
		i++;
	if (i == UNWIND_READS)
		return UNWIND_ERROR;
	probe->reads[i] = address;
	if (i == probe->read_count)
		probe->read_count++;
	*ret_value = UNWIND_READ + i * UNWIND_READ_STEP;
	return 0;
}

static int unwind_access_mem(void *space, uint64_t address, uint64_t *value, int write,
			     void *context)
{
	struct unwind_probe *probe = context;

	(void)space;
	if (write)
		return UNWIND_ERROR;
	if (UNWIND_RANGE(address) > 0)
		return unwind_read_stack(probe, address, value);
	if (!unwind_holds(probe, address, sizeof(*value)))
		return UNWIND_ERROR;
	memcpy(value, (const void *)(uintptr_t)address, sizeof(*value));
	return 0;
}

static int unwind_access_reg(void *space, int number, uint64_t *value, int write, void *context)
{
	const struct unwind_probe *probe = context;

	(void)space;
	if (write)
		return UNWIND_ERROR;
	if (number == UNWIND_RIP)
		*value = probe->ip;
	else if (number == UNWIND_RSP)
		*value = UNWIND_SP;
	else if (number == UNWIND_RBP)
		*value = UNWIND_FP;
	else
		*value = UNWIND_OTHER;
	return 0;
}

static int unwind_no_fpreg(void *space, int number, void *value, int write, void *context)
{
	(void)space;
	(void)number;
	(void)value;
	(void)write;
	(void)context;
	return UNWIND_ERROR;
}

static int unwind_no_resume(void *space, void *cursor, void *context)
{
	(void)space;
	(void)cursor;
	(void)context;
	return UNWIND_ERROR;
}

static int unwind_no_name(void *space, uint64_t ip, char *text, size_t length, uint64_t *ret_offset,
			  void *context)
{
	(void)space;
	(void)ip;
	(void)text;
	(void)length;
	(void)ret_offset;
	(void)context;
	return UNWIND_ERROR;
}

/* The readable parts of the file in memory: the tables are in one, and point into others. */
static bool unwind_find_parts(struct unwind_probe *probe)
{
	const char *image = (const char *)probe->file.low;
	ElfW(Ehdr) head;
	ElfW(Phdr) part;

	memcpy(&head, image, sizeof(head));
	/* Only the first page of the file is known to be mapped. */
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(part) ||
	    head.e_phoff > 2048 || head.e_phnum > 32)
		return false;
	for (size_t i = 0; i < head.e_phnum && probe->part_count < UNWIND_PARTS; i++) {
		memcpy(&part, image + head.e_phoff + i * sizeof(part), sizeof(part));
		if (part.p_type != PT_LOAD || !(part.p_flags & PF_R))
			continue;
		/* Read in words, of which the last may exceed the end, but not the page. */
		part.p_vaddr += linked_base(&probe->file);
		probe->parts[probe->part_count].low =
			bits_align_down(part.p_vaddr, sizeof(uint64_t));
		probe->parts[probe->part_count++].high =
			bits_align_up(part.p_vaddr + part.p_memsz, sizeof(uint64_t));
	}
	return true;
}

bool unwind_find_file(uintptr_t address, struct unwind_file *ret_file)
{
	struct linked_file file;

	if (!linked_find(address, &file))
		return false;
	*ret_file = (struct unwind_file){
		.low = file.low,
		.high = file.high,
		.path = linked_path(&file),
	};
	return true;
}

/* The address a value was read from; false = it was not read. */
static bool unwind_was_read(const struct unwind_probe *probe, uint64_t value, uint64_t *ret_address)
{
	uint64_t i = (value - UNWIND_READ) / UNWIND_READ_STEP;

	if (value < UNWIND_READ || i >= probe->read_count ||
	    value != UNWIND_READ + i * UNWIND_READ_STEP)
		return false;
	*ret_address = probe->reads[i];
	return true;
}

/* The distance; false = too large for a rule. */
static bool unwind_distance(uint64_t from, uint64_t to, int32_t *ret_distance)
{
	int64_t distance = (int64_t)(to - from);

	if (distance >= INT32_MAX || distance <= INT32_MIN)
		return false;
	*ret_distance = (int32_t)distance;
	return true;
}

/* Which of the artificial values the caller's registers came from. */
static bool unwind_decode(const struct unwind_probe *probe, uint64_t ip, uint64_t sp, uint64_t fp,
			  struct rule *rule)
{
	uint64_t ip_at, fp_at, cfa_at;

	if (UNWIND_RANGE(sp) == UNWIND_RANGE(UNWIND_SP)) {
		rule->kind = RULE_SP;
		if (!unwind_distance(UNWIND_SP, sp, &rule->cfa))
			return false;
	} else if (UNWIND_RANGE(sp) == UNWIND_RANGE(UNWIND_FP)) {
		rule->kind = RULE_FP;
		if (!unwind_distance(UNWIND_FP, sp, &rule->cfa))
			return false;
	} else {
		rule->kind = RULE_SAVED;
		if (!unwind_was_read(probe, sp, &cfa_at) ||
		    UNWIND_RANGE(cfa_at) != UNWIND_RANGE(UNWIND_FP) ||
		    !unwind_distance(UNWIND_FP, cfa_at, &rule->cfa))
			return false;
	}
	if (!unwind_was_read(probe, ip, &ip_at) || ip_at + sizeof(uint64_t) != sp)
		return false;
	rule->fp = RULE_FP_KEPT;
	if (fp == UNWIND_FP)
		return true;
	return unwind_was_read(probe, fp, &fp_at) &&
	       unwind_distance(rule->kind == RULE_SAVED ? UNWIND_FP : sp, fp_at, &rule->fp);
}

void unwind_learn(uintptr_t address, struct rule *ret_rule)
{
	struct unwind_probe probe = {.ip = address - 1};
	struct rule rule = {.kind = RULE_LOST};
	uint64_t cursor[UNWIND_CURSOR];
	uint64_t ip, sp, fp;
	int r;

	*ret_rule = rule;
	if (!linked_find(address, &probe.file) || !unwind_find_parts(&probe) ||
	    unwind.init_remote(cursor, unwind.space, &probe) < 0)
		return;
	r = unwind.step(cursor);
	/* Without tables libunwind guesses. */
	if (r < 0 || !probe.has_tables)
		return;
	if (r == 0) {
		ret_rule->kind = RULE_END;
		return;
	}
	if (unwind.get_reg(cursor, UNWIND_RIP, &ip) == 0 &&
	    unwind.get_reg(cursor, UNWIND_RSP, &sp) == 0 &&
	    unwind.get_reg(cursor, UNWIND_RBP, &fp) == 0 &&
	    unwind_decode(&probe, ip, sp, fp, &rule))
		*ret_rule = rule;
}

static __attribute__((noinline)) uintptr_t unwind_here(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

/* Checks the result for a function that is known to have a frame. */
static __attribute__((noinline)) bool unwind_try(bool is_old)
{
	void *volatile frame = __builtin_frame_address(0);
	struct rule rule;

	unwind.is_old = is_old;
	unwind_learn(unwind_here(), &rule);
	return rules_are_frames(&rule) && frame;
}

static bool unwind_get(void *library, const char *name, void *ret_function)
{
	void *found = linked_symbol(library, name);

	memcpy(ret_function, &found, sizeof(found)); /* C has no cast to a function pointer */
	return found != NULL;
}

static bool unwind_make_space(void)
{
	static struct unwind_accessors accessors = {
		.find_proc_info = unwind_find_proc_info,
		.put_unwind_info = unwind_put_unwind_info,
		.get_dyn_info_list_addr = unwind_no_list,
		.access_mem = unwind_access_mem,
		.access_reg = unwind_access_reg,
		.access_fpreg = unwind_no_fpreg,
		.resume = unwind_no_resume,
		.get_proc_name = unwind_no_name,
	};

	unwind.space = unwind.create(&accessors, 0);
	/* Its caches would have to be told of every unloaded file. */
	return unwind.space && unwind.set_caching(unwind.space, UNWIND_CACHE_NONE) == 0;
}

static bool unwind_open(void)
{
	void *library = linked_load(UNWIND_NAME);

	/* Never closed: the functions stay in use. */
	return library && unwind_get(library, "_Ux86_64_create_addr_space", &unwind.create) &&
	       unwind_get(library, "_Ux86_64_set_caching_policy", &unwind.set_caching) &&
	       unwind_get(library, "_Ux86_64_init_remote", &unwind.init_remote) &&
	       unwind_get(library, "_Ux86_64_step", &unwind.step) &&
	       unwind_get(library, "_Ux86_64_get_reg", &unwind.get_reg) &&
	       unwind_get(library, "_Ux86_64_dwarf_search_unwind_table", &unwind.search) &&
	       linked_can_find() && unwind_make_space() && (unwind_try(false) || unwind_try(true));
}

/* Ignored if the state is no longer UNWIND_LATE. */
static void unwind_fetch(void)
{
	enum unwind_state late = UNWIND_LATE;
	enum unwind_state found = unwind_open() ? UNWIND_READY : UNWIND_MISSING;

	(void)__atomic_compare_exchange_n(&unwind_is_there, &late, found, false, __ATOMIC_RELEASE,
					  __ATOMIC_RELAXED);
}

void unwind_load(void)
{
	static struct loader_thread loader_thread;

	if (linked_is_static()) {
		debug_line("stacks: there is no unwinding in a program that is linked statically");
		unwind_become(UNWIND_MISSING);
		return;
	}
	unwind_become(loader_thread_is_orphan() ? UNWIND_MISSING : UNWIND_LATE);
	if (!loader_thread_is_orphan())
		(void)loader_thread_run(&loader_thread,
					unwind_fetch); /* if not now, perhaps later */
	if (unwind_state() == UNWIND_MISSING)
		debug_line("stacks: %s is not there, or is not what it was", UNWIND_NAME);
}

#else

void unwind_load(void)
{
	debug_line("stacks: there is no unwinding on this machine");
	unwind_become(UNWIND_MISSING);
}

void unwind_learn(uintptr_t address, struct rule *ret_rule)
{
	(void)address;
	*ret_rule = (struct rule){.kind = RULE_LOST};
}

bool unwind_find_file(uintptr_t address, struct unwind_file *ret_file)
{
	(void)address;
	(void)ret_file;
	return false;
}

#endif
