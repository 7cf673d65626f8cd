/* SPDX-License-Identifier: Apache-2.0 */

/* The driver's file of mappings: as it is today, busy, hostile, and in every other form. */

#include "source/host/driver-memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "source/host/testing/host-testing.h"

#define HEAD                                                                   \
	"WARNING: This file is for diagnostic purposes only.\n"                \
	"Its format is not stable and may change in future driver versions.\n" \
	"Do not write scripts that parse this file.\n"                         \
	"\n"                                                                   \
	"PID      Comm             Type           Mapping Details\n"           \
	"----     ----             ----           ---------------\n"

#define OPEN "4242     python3          OPEN_FD       \n"
#define PINNED                                                                    \
	"4242     python3          PIN_PAGES      VA: 0x00007f0000000000 -> PA: " \
	"0x0000000100000000 (size=0x40000000)\n"
#define PINNED_FAR                                                                  \
	"4242     python3          PIN_PAGES+IATU VA: 0x00007f0040000000 -> IOVA: " \
	"0x0000000200000000 -> NOC: 0x1000000000000000 (size=0x1000)\n"
#define DMA                                                                             \
	"4242     python3          DMA_BUF        ID: 0   -> IOVA: 0x00000000ffff0000 " \
	"(size=0x200000)\n"
#define DMA_FAR                                                                       \
	"4242     python3          DMA_BUF+IATU   ID: 12  -> PA: 0x0000000000000000 " \
	"-> NOC: 0x0 (size=0x1000)\n"
#define WINDOW "4242     python3          TLB-alloc      ID: 5  \n"
#define TLB                                                                        \
	"4242     python3          TLB            ID: 186 WC -> BAR0 + 0xba00000 " \
	"(size=0x200000)\n"
#define BAR "4242     python3          BAR            BAR2 UC (offset=0x0, size=0x100000)\n"
#define BUSY "                          "

static int parse(const char *text, struct snapshot_driver_memory **ret_rows, size_t *ret_count)
{
	/* Without the NUL at its end, so that sanitizers see a read beyond it. */
	size_t length = strlen(text);
	char *copy = calloc(1, length + !length);
	int r;

	assert(copy);
	for (size_t i = 0; i < length; i++)
		copy[i] = text[i];
	*ret_rows = NULL;
	r = driver_memory_parse(copy, length, ret_rows, ret_count);
	free(copy);
	return r;
}

/* The only row of a text. */
static struct snapshot_driver_memory parse_one(const char *text)
{
	struct snapshot_driver_memory *rows, row;
	size_t count;

	assert(parse(text, &rows, &count) == 0 && count == 1);
	row = rows[0];
	free(rows);
	return row;
}

static void check_nobody(const char *text)
{
	struct snapshot_driver_memory *rows;
	size_t count;

	assert(parse(text, &rows, &count) == 0 && count == 0);
	free(rows);
}

static void check_wrong(const char *text)
{
	struct snapshot_driver_memory *rows;
	size_t count;

	assert(parse(text, &rows, &count) == -EBADMSG);
}

UNIT(every_kind_of_line_counts)
{
	struct snapshot_driver_memory row =
		parse_one(HEAD OPEN PINNED PINNED_FAR DMA DMA_FAR WINDOW TLB TLB BAR);

	assert(row.pid == 4242 && row.pinned == 0x40001000 && row.dma == 0x201000);
	/* A window that is mapped twice is one; another one is not mapped. */
	assert(row.tlb == 0x200000 && row.tlb_windows == 2);
	row = parse_one(HEAD OPEN);
	assert(row.pid == 4242 && row.pinned == 0 && row.tlb_windows == 0);
	check_nobody(HEAD);
}

UNIT(descriptors_of_a_process_are_added_up)
{
	struct snapshot_driver_memory *rows;
	size_t count;

	assert(parse(HEAD OPEN DMA "7        x                OPEN_FD       \n" OPEN DMA WINDOW,
		     &rows, &count) == 0);
	assert(count == 2 && rows[0].pid == 7 && rows[0].dma == 0);
	assert(rows[1].pid == 4242 && rows[1].dma == 0x400000 && rows[1].tlb_windows == 1);
	free(rows);
}

/* The driver does not wait for a process that is in one of its calls; then not all is known. */
UNIT(a_busy_process_is_not_known)
{
	check_nobody(HEAD OPEN BUSY "...locked, skipping details...\n");
	check_nobody(HEAD OPEN BUSY "...IATU busy, skipping details...\n");
	check_nobody(HEAD OPEN DMA BUSY "...TLBs busy, skipping...\n");
	check_nobody(HEAD OPEN DMA WINDOW BUSY "...VMA list busy, skipping...\n");
	check_nobody(HEAD OPEN DMA OPEN BUSY "...locked, skipping details...\n");
	check_wrong(HEAD OPEN BUSY "...asleep, skipping details...\n");
	check_wrong(HEAD BUSY "...locked, skipping details...\n");
	check_wrong(HEAD OPEN "4242     python3          ...locked, skipping details...\n");
	/* Outside our pid namespace. */
	check_nobody(HEAD "0        x                OPEN_FD       \n");
}

/* A name may contain anything but a NUL, and is never taken for a line. */
UNIT(names_cannot_look_like_lines)
{
	static const char *const names[] = {
		"",        "\n1        x\n", "DMA_BUF\n0x1 (",
		"a b c d", "...locked\n",    "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"};
	char text[sizeof(HEAD) + 200];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct snapshot_driver_memory row;

		snprintf(text, sizeof(text), HEAD "%-8d %-16s %-14s\n%-8d %-16s %-14s ID: %-3u\n",
			 4242, names[i], "OPEN_FD", 4242, names[i], "TLB-alloc", 7u);
		row = parse_one(text);
		assert(row.pid == 4242 && row.dma == 0 && row.tlb_windows == 1);
	}
}

UNIT(anything_else_is_refused)
{
	static const char *const wrong[] = {
		"",
		"\n",
		"PID      Comm             Type           Mapping Details\n",
		HEAD "\n",
		HEAD "4242",
		HEAD PINNED,                                             /* of which descriptor? */
		HEAD OPEN "4242     python3          OPEN_FD       ",    /* cut */
		HEAD OPEN "4242     python3          OPEN_FD\n",         /* not padded */
		HEAD OPEN "4242     python3          OPEN_FD        \n", /* too much */
		HEAD OPEN "4243     python3          TLB-alloc      ID: 5  \n",
		HEAD OPEN "4242     python3          TLB-alloc      ID: 5000\n",
		HEAD OPEN "4242     python3          TLB-alloc      ID: -1 \n",
		HEAD OPEN "4242     python3          HUGE_PAGES     (size=0x1000)\n",
		HEAD OPEN
		"4242     python3          DMA_BUF        ID: 0   -> IOVA: 0x0 (size=4096)\n",
		HEAD OPEN
		"4242     python3          DMA_BUF        ID: 0   -> IOVA: 0x0 (size=0x)\n",
		HEAD OPEN "4242     python3          DMA_BUF        ID: 0   -> IOVA: 0x0 "
			  "(size=0x10000000000000000)\n",
		HEAD OPEN "4242     python3          DMA_BUF        ID: 0   -> IOVA: 0x0 "
			  "(size=0x1000) (refs: 1)\n",
		HEAD " 4242    python3          OPEN_FD       \n",
		HEAD "4242x    python3          OPEN_FD       \n",
		HEAD "99999999 python3          OPEN_FD       \n99999999999",
		HEAD "9999999999python3         OPEN_FD       \n",
		HEAD "4242     a name of 16 byteOPEN_FD       \n",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		check_wrong(wrong[i]);
}

/* However it is cut or changed: either it is read as before, or nothing is. */
UNIT(every_cut_and_every_changed_byte)
{
	static const char good[] = HEAD OPEN PINNED DMA_FAR WINDOW TLB BAR;
	struct snapshot_driver_memory *rows;
	char text[sizeof(good)];
	size_t count;
	int r;

	for (size_t i = 0; i < sizeof(good); i++) {
		snprintf(text, sizeof(text), "%.*s", (int)i, good);
		r = parse(text, &rows, &count);
		assert(r == 0 || r == -EBADMSG);
		/* Complete only where a line ends. */
		assert(r < 0 || (i > 0 && good[i - 1] == '\n'));
		free(rows);
	}
	for (size_t i = 0; i < sizeof(HEAD) - 1; i++) {
		memcpy(text, good, sizeof(text));
		text[i] = '~';
		check_wrong(text);
	}
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		memcpy(text, good, sizeof(text));
		text[i] = '~';
		r = parse(text, &rows, &count);
		assert(r == -EBADMSG || (count == 1 && rows[0].pid == 4242));
		if (r == 0)
			free(rows);
	}
}

#define CARD "sys/class/tenstorrent/tenstorrent!0/"
#define FILE_OF_IT "sys/kernel/debug/tenstorrent/0/mappings"

/* A process that is known to have the card open. */
static void fake_machine(void)
{
	host_testing_start();
	host_testing_text(CARD "tt_card_type", "n150\n");
	host_testing_text(CARD "tt_asic_id", "1F2E3D4C5B6A7988\n");
	host_testing_process(4242, "python3", 100);
	host_testing_text("proc/driver/tenstorrent/0/pids", "4242\n");
}

UNIT(figures_are_shown_with_the_process_on_that_card)
{
	const struct snapshot_part *part;
	struct snapshot *snapshot;

	fake_machine();
	host_testing_text(FILE_OF_IT, HEAD OPEN PINNED DMA WINDOW);
	snapshot = host_testing_look();
	assert(snapshot->process_count == 1 && snapshot->processes[0].part_count == 1);
	part = &snapshot->processes[0].parts[0];
	assert(part->driver_memory && part->driver_memory->pinned == 0x40000000);
	assert(part->driver_memory->dma == 0x200000 && part->driver_memory->tlb_windows == 1);
	/* The card's own memory is another matter. */
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		assert(snapshot->devices[0].memory[type].used == 0 && part->memory[type].used == 0);
	snapshot_free(snapshot);
}

UNIT(a_form_that_is_not_known_is_not_shown)
{
	struct snapshot *snapshot;

	fake_machine();
	host_testing_text(FILE_OF_IT, HEAD OPEN PINNED "something new\n");
	snapshot = host_testing_look();
	assert(snapshot->process_count == 1 && !snapshot->processes[0].parts[0].driver_memory);
	assert(snapshot->driver_memory_count == 0);
	assert(snapshot->note_count >= 1 && strstr(snapshot->notes[0], "is not known"));
	snapshot_free(snapshot);
}

UNIT(without_the_file_nothing_is_known)
{
	struct snapshot *snapshot;

	fake_machine();
	snapshot = host_testing_look();
	assert(snapshot->process_count == 1 && !snapshot->processes[0].parts[0].driver_memory);
	for (size_t i = 0; i < snapshot->note_count; i++)
		assert(!strstr(snapshot->notes[i], "driver lists"));
	snapshot_free(snapshot);
}
