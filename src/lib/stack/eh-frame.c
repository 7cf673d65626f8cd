/* SPDX-License-Identifier: Apache-2.0 */

/* Finds an address's entry: the file, the sorted table of .eh_frame_hdr, the FDE and its CIE. */

#include "lib/stack/eh-frame.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/bits.h"
#include "lib/process/linked.h"

/* How pointers are written: the size below, what they are relative to above. */
#define EH_POINTER_SIZE 0x0fu
#define EH_POINTER_BASE 0x70u
#define EH_POINTER_INDIRECT 0x80u
#define EH_POINTER_PC 0x10u

/* .eh_frame_hdr in the one form that linkers write: 4 bytes each, relative to it, sorted. */
struct eh_head {
	uint8_t version;
	uint8_t pointer_form;
	uint8_t count_form;
	uint8_t table_form;
	int32_t pointer;
	uint32_t count;
};

struct eh_row {
	int32_t start;
	int32_t entry;
};

void eh_skip(struct eh_cursor *cursor, uint64_t length)
{
	if (length > (uint64_t)(cursor->end - cursor->at)) {
		cursor->is_bad = true;
		cursor->at = cursor->end;
		return;
	}
	cursor->at += length;
}

static void eh_take(struct eh_cursor *cursor, void *to, size_t size)
{
	const uint8_t *from = cursor->at;

	eh_skip(cursor, size);
	if (cursor->is_bad || !from)
		memset(to, 0, size);
	else
		memcpy(to, from, size);
}

uint64_t eh_read(struct eh_cursor *cursor, size_t size)
{
	uint64_t value = 0;

	eh_take(cursor, &value, size);
	return value;
}

/* Both kinds of LEB128. @ret_sign: the sign, spread over the bits above the number. */
static uint64_t eh_read_leb(struct eh_cursor *cursor, uint64_t *ret_sign)
{
	uint64_t value = 0;
	uint8_t byte;

	*ret_sign = 0;
	for (unsigned int shift = 0; shift < 64; shift += 7) {
		byte = (uint8_t)eh_read(cursor, 1);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			if ((byte & 0x40) && shift + 7 < 64)
				*ret_sign = ~UINT64_C(0) << (shift + 7);
			return value;
		}
	}
	cursor->is_bad = true;
	return 0;
}

uint64_t eh_read_uleb(struct eh_cursor *cursor)
{
	uint64_t sign;

	return eh_read_leb(cursor, &sign);
}

int64_t eh_read_sleb(struct eh_cursor *cursor)
{
	uint64_t sign, value = eh_read_leb(cursor, &sign);

	return (int64_t)(value | sign);
}

/* The size of a pointer of this form; 0 = none that is known. */
static size_t eh_pointer_size(uint8_t form)
{
	static const uint8_t sizes[16] = {
		[0x0] = 8, [0x2] = 2, [0x3] = 4, [0x4] = 8, [0xa] = 2, [0xb] = 4, [0xc] = 8};

	return sizes[form & EH_POINTER_SIZE];
}

static uintptr_t eh_read_pointer(struct eh_cursor *cursor, uint8_t form)
{
	uintptr_t here = (uintptr_t)cursor->at;
	size_t size = eh_pointer_size(form);
	uint64_t value;

	if (size == 0 || (form & EH_POINTER_INDIRECT)) {
		cursor->is_bad = true;
		return 0;
	}
	value = eh_read(cursor, size);
	if ((form & 0x08) && size < 8) /* signed */
		value = (uint64_t)((int64_t)(value << (64 - 8 * size)) >> (64 - 8 * size));
	if ((form & EH_POINTER_BASE) == EH_POINTER_PC)
		value += here;
	else if (form & EH_POINTER_BASE)
		cursor->is_bad = true;
	return (uintptr_t)value;
}

/* A cursor from @address to the end of its part, or one that is bad. */
static struct eh_cursor eh_at(const struct eh_parts *parts, uintptr_t address)
{
	for (size_t i = 0; i < parts->count; i++) {
		if (address >= parts->list[i].low && address < parts->list[i].high)
			return (struct eh_cursor){.at = (const uint8_t *)address,
						  .end = (const uint8_t *)parts->list[i].high};
	}
	return (struct eh_cursor){.is_bad = true};
}

/* The parts that may be accessed in all of these ways: PF_R, PF_X. */
static bool eh_find_parts(const struct linked_file *file, unsigned int access,
			  struct eh_parts *ret_parts)
{
	const char *image = (const char *)file->low;
	ElfW(Ehdr) head;
	ElfW(Phdr) part;

	ret_parts->count = 0;
	memcpy(&head, image, sizeof(head));
	/* Only the first page of the file is known to be mapped. */
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(part) ||
	    head.e_phoff > 2048 || head.e_phnum > 32)
		return false;
	for (size_t i = 0; i < head.e_phnum && ret_parts->count < EH_PARTS; i++) {
		memcpy(&part, image + head.e_phoff + i * sizeof(part), sizeof(part));
		if (part.p_type != PT_LOAD || (part.p_flags & access) != access)
			continue;
		ret_parts->list[ret_parts->count].low = part.p_vaddr + linked_base(file);
		ret_parts->list[ret_parts->count++].high =
			part.p_vaddr + linked_base(file) + part.p_memsz;
	}
	return true;
}

/* What signal handlers return to: the system call rt_sigreturn(), in libc or the vDSO. */
#if defined(__x86_64__)
static const uint8_t eh_trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
#else
static const uint8_t eh_trampoline[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
#endif

static bool eh_is_trampoline(const struct eh_parts *parts, uintptr_t address)
{
	uint8_t bytes[sizeof(eh_trampoline)];
	struct eh_cursor cursor = eh_at(parts, address);

	eh_take(&cursor, bytes, sizeof(bytes));
	return !cursor.is_bad && memcmp(bytes, eh_trampoline, sizeof(bytes)) == 0;
}

/* The FDE whose code begins last at or before @pc; 0 = none. */
static uintptr_t eh_search(const struct eh_parts *parts, uintptr_t tables, uintptr_t pc)
{
	struct eh_cursor cursor = eh_at(parts, tables);
	struct eh_head head;
	struct eh_row row;
	const uint8_t *rows;
	uint32_t low = 0, high;

	eh_take(&cursor, &head, sizeof(head));
	if (cursor.is_bad || head.version != 1 || head.pointer_form != 0x1b ||
	    head.count_form != 0x03 || head.table_form != 0x3b)
		return 0;
	high = head.count;
	rows = cursor.at;
	eh_skip(&cursor, high * (uint64_t)sizeof(row));
	if (cursor.is_bad)
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		memcpy(&row, rows + middle * sizeof(row), sizeof(row));
		if (tables + (uintptr_t)(intptr_t)row.start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return 0;
	memcpy(&row, rows + (low - 1) * sizeof(row), sizeof(row));
	return tables + (uintptr_t)(intptr_t)row.entry;
}

/* A CIE or FDE: a cursor over what follows its length. The 64-bit form is written by nobody. */
static struct eh_cursor eh_block(const struct eh_parts *parts, uintptr_t address)
{
	struct eh_cursor cursor = eh_at(parts, address);
	uint64_t length = eh_read(&cursor, 4);
	struct eh_cursor end = cursor;

	eh_skip(&end, length);
	if (length == 0 || length == UINT32_MAX || end.is_bad)
		cursor.is_bad = true;
	cursor.end = end.at;
	return cursor;
}

/* What the letters of a CIE's augmentation say. */
static void eh_augmentation(struct eh_cursor *cursor, const char *letters, struct eh_entry *entry,
			    uint8_t *ret_form)
{
	uint64_t length = eh_read_uleb(cursor);
	struct eh_cursor data = *cursor;
	uint8_t form;

	eh_skip(cursor, length);
	data.end = cursor->at;
	for (; *letters && !data.is_bad; letters++) {
		if (*letters == 'R') {
			*ret_form = (uint8_t)eh_read(&data, 1);
		} else if (*letters == 'L') {
			eh_skip(&data, 1);
		} else if (*letters == 'P') {
			form = (uint8_t)eh_read(&data, 1);
			eh_skip(&data, eh_pointer_size(form));
			data.is_bad |= eh_pointer_size(form) == 0;
		} else if (*letters == 'S') {
			entry->is_signal = true;
		} else if (*letters != 'B' && *letters != 'G') { /* aarch64: no data of their own */
			data.is_bad = true;
		}
	}
	cursor->is_bad |= data.is_bad;
}

/* @ret_form: how the FDE writes its addresses. @ret_has_data: it has augmentation data too. */
static void eh_common(struct eh_cursor cursor, struct eh_entry *entry, uint8_t *ret_form,
		      bool *ret_has_data)
{
	const char *letters;
	uint64_t version;

	if (eh_read(&cursor, 4) != 0)
		cursor.is_bad = true;
	version = eh_read(&cursor, 1);
	letters = (const char *)cursor.at;
	while (eh_read(&cursor, 1) != 0 && !cursor.is_bad)
		;
	entry->code_align = eh_read_uleb(&cursor);
	entry->data_align = eh_read_sleb(&cursor);
	entry->return_register = version == 1 ? eh_read(&cursor, 1) : eh_read_uleb(&cursor);
	if (cursor.is_bad || (version != 1 && version != 3)) {
		entry->common.is_bad = true;
		return;
	}
	*ret_form = 0;
	*ret_has_data = *letters == 'z';
	if (*ret_has_data)
		eh_augmentation(&cursor, letters + 1, entry, ret_form);
	else if (*letters)
		cursor.is_bad = true;
	entry->common = cursor;
}

static bool eh_entry_read(const struct eh_parts *parts, uintptr_t address, struct eh_entry *entry)
{
	struct eh_cursor cursor = eh_block(parts, address);
	uintptr_t here = (uintptr_t)cursor.at;
	uint64_t back = eh_read(&cursor, 4);
	uint64_t length;
	uint8_t form = 0;
	bool has_data = false;

	if (cursor.is_bad || back == 0 || back > here)
		return false;
	eh_common(eh_block(parts, here - back), entry, &form, &has_data);
	if (entry->common.is_bad)
		return false;
	entry->start = eh_read_pointer(&cursor, form);
	length = eh_read_pointer(&cursor, form & EH_POINTER_SIZE);
	if (has_data)
		eh_skip(&cursor, eh_read_uleb(&cursor));
	entry->own = cursor;
	return !cursor.is_bad && entry->pc >= entry->start && entry->pc - entry->start < length;
}

void eh_parts_rule(const struct eh_parts *parts, uintptr_t tables, uintptr_t pc,
		   struct rule *ret_rule)
{
	struct eh_entry entry = {.pc = pc};
	uintptr_t at = eh_search(parts, tables, pc);

	*ret_rule = (struct rule){.kind = RULE_LOST};
	if (at && eh_entry_read(parts, at, &entry))
		eh_program_rule(&entry, ret_rule);
}

void eh_frame_rule(uintptr_t address, struct rule *ret_rule)
{
	struct linked_file file;
	struct eh_parts parts;

	*ret_rule = (struct rule){.kind = RULE_LOST};
	/*
	 * A damaged return address may lead into data, which is the application's: it may be
	 * protected, or be written just now.
	 */
	if (!linked_find(address, &file) || !eh_find_parts(&file, PF_R | PF_X, &parts))
		return;
	/* By its code, as debuggers do: tables may be missing, and describe it differently. */
	if (eh_is_trampoline(&parts, address))
		ret_rule->kind = RULE_SIGNAL;
	else if (eh_find_parts(&file, PF_R, &parts))
		eh_parts_rule(&parts, (uintptr_t)file.tables, address - 1, ret_rule);
}

static __attribute__((noinline)) uintptr_t eh_frame_here(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

bool eh_frame_works(void)
{
	struct rule rule;

	eh_frame_rule(eh_frame_here(), &rule);
	return rule.kind > RULE_LOST;
}
