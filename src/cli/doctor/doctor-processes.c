/* SPDX-License-Identifier: Apache-2.0 */

/* Whether tracking is on in a process, the library is loaded and its book is sound. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "book/format/layout.h"
#include "book/read/reader.h"
#include "cli/common/session.h"
#include "cli/doctor/doctor.h"
#include "metal/metal-note.h"
#include "model/snapshot.h"
#include "source/books/scan.h"
#include "source/host/kernel.h"
#include "source/proc/process-env.h"
#include "symbol/symbolizer-process.h"

/* The size of the smallest book, as the library computes it (lib/bookfile/limits.h). */
#define DOCTOR_BOOK_MIN (BOOK_POOL_OFFSET + 64u * BOOK_UNIT)

/* No stacks: only the arena's reserved first entry is used. */
#define DOCTOR_STACKS_NONE 16u

#define DOCTOR_GENERATIONS 64 /* more processes above one another are not looked at */

#define DOCTOR_TEXT_OF(x) #x
#define DOCTOR_VERSION_OF(major, minor, patch) \
	DOCTOR_TEXT_OF(major) "." DOCTOR_TEXT_OF(minor) "." DOCTOR_TEXT_OF(patch)

/* A process and what is known about it. */
struct doctor_patient {
	struct proc_facts facts;
	struct process_env inside;
	struct scan_book *book; /* NULL = none found */
	char name[TEXT_ESCAPE_SIZE(64)];
};

/* The commands themselves have the library loaded but need no book. */
static bool doctor_is_ours(const struct proc_facts *facts)
{
	return facts->id.pid == (uint32_t)getpid() || strcmp(facts->comm, "ttmem") == 0 ||
	       strcmp(facts->comm, "ttmemd") == 0 ||
	       strcmp(facts->comm, SYMBOLIZER_PROCESS_NAME) == 0;
}

static struct scan_book *doctor_find_book(const struct doctor *doctor, uint32_t pid)
{
	const struct scan *scan = session_scan(doctor->session);

	for (size_t i = 0; i < scan->count; i++) {
		if (scan->books[i]->alive && scan->books[i]->owner.id.pid == pid)
			return scan->books[i];
	}
	return NULL;
}

#define DOCTOR_TELL(doctor, kind, patient, ...) \
	doctor_tell(doctor, kind, (patient)->facts.id.pid, (patient)->facts.real_uid, __VA_ARGS__)

static uint32_t doctor_parent(const struct doctor *doctor, uint32_t pid)
{
	struct proc_facts facts;

	return proc_read(&session_scan(doctor->session)->proc, pid, &facts) < 0 ? 0 : facts.parent;
}

static bool doctor_is_launcher(const struct doctor *doctor, uint32_t pid)
{
	for (size_t i = 0; i < doctor->launcher_count; i++) {
		if (doctor->launchers[i] == pid)
			return true;
	}
	return false;
}

/* Once: what is above tracked processes. Without memory some are missing. */
static void doctor_find_launchers(struct doctor *doctor)
{
	const struct scan *scan = session_scan(doctor->session);

	doctor->has_launchers = true;
	for (size_t i = 0; i < scan->count; i++) {
		uint32_t pid = scan->books[i]->alive ? scan->books[i]->owner.id.pid : 0;

		/* What is above one that is known already is known, too. */
		while (pid && (pid = doctor_parent(doctor, pid)) &&
		       !doctor_is_launcher(doctor, pid)) {
			uint32_t *list =
				array_grow(doctor->launchers, &doctor->launcher_capacity,
					   doctor->launcher_count + 1, sizeof(*doctor->launchers));

			if (!list)
				return;
			doctor->launchers = list;
			list[doctor->launcher_count++] = pid;
		}
	}
}

/*
 * Shells and other helpers that a tracked program has started, or that have started one, have its
 * environment and the library that is preloaded there, and nothing to report.
 */
static bool doctor_is_helper(struct doctor *doctor, const struct doctor_patient *patient)
{
	uint32_t pid = patient->facts.id.pid;

	/* Those with a device open are no helpers. */
	for (size_t i = 0; i < doctor->snapshot->process_count; i++) {
		if (doctor->snapshot->processes[i].id.pid == pid)
			return false;
	}
	if (!doctor->has_launchers)
		doctor_find_launchers(doctor);
	if (doctor_is_launcher(doctor, pid))
		return true;
	for (int i = 0; i < DOCTOR_GENERATIONS && (pid = doctor_parent(doctor, pid)); i++) {
		if (doctor_find_book(doctor, pid))
			return true;
	}
	return false;
}

/* Explains why there is no book. */
static void doctor_explain_no_book(struct doctor *doctor, const struct doctor_patient *patient)
{
	const struct process_env *inside = &patient->inside;
	uint64_t limit = inside->file_limit < inside->address_limit ? inside->file_limit
								    : inside->address_limit;
	char size[TEXT_NUMBER_SIZE];

	if (inside->book) {
		DOCTOR_TELL(doctor, DOCTOR_BOOK_HIDDEN, patient,
			    "%s has a book mapped, but no descriptor of it", patient->name);
	} else if (!*inside->library) {
		if (inside->has_metal || doctor->only_pid)
			DOCTOR_TELL(doctor, DOCTOR_LIBRARY_MISSING, patient,
				    "%s has %s, and no libttmem.so loaded", patient->name,
				    inside->has_metal ? "tt-metal's library" : "no book");
	} else if (inside->tracking == PROCESS_ENV_OFF) {
		DOCTOR_TELL(doctor, DOCTOR_TRACKING_DISABLED, patient,
			    "%s was started with TTMEM=0", patient->name);
	} else if (inside->tracking == PROCESS_ENV_UNSAID) {
		DOCTOR_TELL(doctor, DOCTOR_TRACKING_OFF, patient,
			    "%s has %s loaded and no book; %s", patient->name, inside->library,
			    inside->environment_seen
				    ? "its environment at the start did not turn tracking on (what "
				      "it set later cannot be seen)"
				    : "its environment may not be read");
	} else if (limit < DOCTOR_BOOK_MIN) {
		DOCTOR_TELL(doctor, DOCTOR_BOOK_LIMITED, patient,
			    "%s may use %s of %s, a book needs 14 MiB", patient->name,
			    text_size(limit, size),
			    limit == inside->file_limit ? "file size" : "address space");
	} else if (doctor->only_pid || !doctor_is_helper(doctor, patient)) {
		DOCTOR_TELL(doctor, DOCTOR_NEVER_CALLED, patient,
			    "%s was started with tracking on and has %s loaded, but no book",
			    patient->name, inside->library);
	}
}

static void doctor_examine_arenas(struct doctor *doctor, const struct doctor_patient *patient)
{
	const struct book_header *header = &patient->book->reader.header;
	struct book_arena arena;

	if (reader_arena(&patient->book->reader, BOOK_ARENA_STRINGS, &arena) == 0 && arena.lost)
		DOCTOR_TELL(doctor, DOCTOR_NAMES_LOST, patient,
			    "%s: %" PRIu64 " names or phases found no room", patient->name,
			    arena.lost);
	if (header->lost_stacks)
		DOCTOR_TELL(doctor, DOCTOR_STACKS_LOST, patient, "%s: %" PRIu64 " event%s no stack",
			    patient->name, header->lost_stacks,
			    header->lost_stacks == 1 ? " has" : "s have");
	else if (reader_arena(&patient->book->reader, BOOK_ARENA_STACKS, &arena) != 0 ||
		 arena.used > DOCTOR_STACKS_NONE)
		return;
	else if (header->source == BOOK_SOURCE_SOCKET)
		DOCTOR_TELL(doctor, DOCTOR_STACKS_UNSENT, patient, "%s sends no stacks",
			    patient->name);
	else if (patient->inside.stacks !=
		 PROCESS_ENV_UNSAID) /* there may have been no event yet */
		DOCTOR_TELL(doctor, DOCTOR_STACKS_OFF, patient, "%s records no stacks%s",
			    patient->name,
			    patient->inside.stacks == PROCESS_ENV_ON
				    ? ", though TTMEM_STACKS asked for them"
				    : ": TTMEM_STACKS says so");
}

static void doctor_examine_gave_up(struct doctor *doctor, const struct doctor_patient *patient)
{
	struct reader *reader = &patient->book->reader;
	char clean[TEXT_CLEAN_SIZE(BOOK_PATH_MAX)];
	size_t length = 0;
	const char *reason = reader_string(reader, reader->header.gave_up, &length);

	*clean = '\0';
	if (reason)
		text_clean(reason, bits_min(length, BOOK_PATH_MAX), clean);
	DOCTOR_TELL(doctor, DOCTOR_TRACKING_GAVE_UP, patient, "%s: %s", patient->name,
		    *clean ? clean : "the reason is not known");
}

/* What libttmem-metal.so has written into the book: which tt-metal it found, and what it learned. */
static void doctor_examine_metal(struct doctor *doctor, const struct doctor_patient *patient)
{
	static const char head[] = METAL_NOTE_HEAD;
	struct reader *reader = &patient->book->reader;
	char note[METAL_NOTE_SIZE], clean[TEXT_CLEAN_SIZE(METAL_NOTE_SIZE)];
	uint32_t id = 0;

	if (patient->book->reader.header.gave_up) {
		doctor_examine_gave_up(doctor, patient);
		return; /* what was learned before is not of interest any more */
	}
	for (int i = 0; i < METAL_NOTE_COUNT && (id = reader_find_string(reader, head, id)); i++) {
		size_t length = 0;
		const char *bytes = reader_string(reader, id, &length);

		length = bits_min(length - (sizeof(head) - 1), sizeof(note) - 1);
		memcpy(note, bytes + sizeof(head) - 1, length);
		text_clean(note, length, clean);
		DOCTOR_TELL(doctor, DOCTOR_METAL_FOUND, patient, "%s: tt-metal: %s", patient->name,
			    clean);
	}
}

static void doctor_examine_book(struct doctor *doctor, const struct doctor_patient *patient)
{
	struct scan_book *book = patient->book;
	const struct book_header *header = &book->reader.header;
	uint64_t now = doctor->snapshot->time_ns;
	char size[TEXT_NUMBER_SIZE];

	if (header->paused)
		DOCTOR_TELL(doctor, DOCTOR_TRACKING_PAUSED, patient, "%s has paused tracking",
			    patient->name);
	if (header->room && header->reserved_bytes >= header->room / 10 * 9)
		DOCTOR_TELL(doctor, DOCTOR_BOOK_FULL, patient,
			    "%s: the book has room for %s and is nearly full", patient->name,
			    text_size(header->room, size));
	if (header->realtime_start > now + UINT64_C(2000000000))
		DOCTOR_TELL(doctor, DOCTOR_CLOCK_WRONG, patient,
			    "%s began its book %s from now, by the clock", patient->name,
			    text_duration(header->realtime_start - now, size));
	if (strncmp(header->library,
		    DOCTOR_VERSION_OF(TTMEM_VERSION_MAJOR, TTMEM_VERSION_MINOR,
				      TTMEM_VERSION_PATCH),
		    sizeof(header->library)) != 0 &&
	    header->source == BOOK_SOURCE_LIBRARY) {
		char version[TEXT_ESCAPE_SIZE(sizeof(header->library))];
		char raw[sizeof(header->library) + 1] = "";

		memcpy(raw, header->library, sizeof(header->library));
		text_escape(raw, version, sizeof(version));
		DOCTOR_TELL(doctor, DOCTOR_LIBRARY_OTHER, patient,
			    "%s has version \"%s\" of the library", patient->name, version);
	}
	doctor_examine_metal(doctor, patient);
	if (patient->inside.has_metal && !patient->inside.has_metal_front &&
	    header->source == BOOK_SOURCE_LIBRARY &&
	    reader_next_shard(&patient->book->reader, 0) == -ENXIO)
		DOCTOR_TELL(doctor, DOCTOR_METAL_UNTRACKED, patient,
			    "%s has tt-metal's library loaded, and its book is empty",
			    patient->name);
	doctor_examine_arenas(doctor, patient);
}

static void doctor_examine(struct doctor *doctor, uint32_t pid)
{
	struct scan *scan = session_scan(doctor->session);
	struct doctor_patient patient = {.book = doctor_find_book(doctor, pid)};
	char comm[TEXT_CLEAN_SIZE(sizeof(patient.facts.comm))];

	if (proc_read(&scan->proc, pid, &patient.facts) < 0 ||
	    process_env_read(&scan->proc, pid, &patient.inside) < 0 ||
	    doctor_is_ours(&patient.facts))
		return;
	/* Kernel threads have neither. */
	if (!patient.inside.maps_seen && !patient.book && pid != doctor->only_pid)
		return;
	text_clean(patient.facts.comm, strnlen(patient.facts.comm, sizeof(patient.facts.comm)),
		   comm);
	text_fit(comm, 32, patient.name, sizeof(patient.name));
	doctor->looked_at++;
	if (patient.inside.library_replaced)
		DOCTOR_TELL(doctor, DOCTOR_LIBRARY_REPLACED, &patient,
			    "%s runs with a copy of %s that is no longer on disk", patient.name,
			    patient.inside.library);
	if (patient.book) {
		doctor->tracked++;
		doctor_examine_book(doctor, &patient);
	} else if (patient.inside.maps_seen) {
		doctor_explain_no_book(doctor, &patient);
	} else {
		DOCTOR_TELL(doctor, DOCTOR_PROCESS_UNREADABLE, &patient,
			    "%s may not be looked into", patient.name);
	}
}

/* Reports what the scan itself found. */
static void doctor_examine_scan(struct doctor *doctor)
{
	const struct scan *scan = session_scan(doctor->session);

	for (size_t i = 0; i < scan->refused_count && i < SCAN_REFUSED_MAX; i++) {
		struct proc_facts facts = {0};

		(void)proc_read(&scan->proc, scan->refused[i].pid, &facts); /* may have exited */
		if (!doctor->only_pid || doctor->only_pid == scan->refused[i].pid)
			doctor_tell(doctor, DOCTOR_BOOK_REFUSED, scan->refused[i].pid,
				    facts.real_uid, "a book was refused: %s",
				    scan->refused[i].reason);
	}
	for (size_t i = 0; i < scan->count; i++) {
		const struct scan_book *book = scan->books[i];

		if (!book->alive && (!doctor->only_pid || doctor->only_pid == book->owner.id.pid))
			doctor_tell(doctor, DOCTOR_BOOK_LEFT, book->owner.id.pid, book->uid,
				    "it has ended; its book is held by pid %" PRIu32, book->holder);
	}
	if (doctor->only_pid)
		return;
	/* Root sees everything that can be seen, so nobody could fix this. */
	if (scan->unreadable && geteuid() != 0)
		doctor_tell(doctor, DOCTOR_PROCESS_UNREADABLE, scan->unreadable_pid, geteuid(),
			    "%" PRIu32 " of your processes may not be looked into",
			    scan->unreadable);
	/* With the kernel module everybody's totals are visible. */
	if (scan->others && !doctor->daemon.answers &&
	    kernel_look(&scan->proc, NULL) == KERNEL_NOT_LOADED)
		doctor_tell(doctor, DOCTOR_OTHERS_UNSEEN, 0, 0,
			    "%" PRIu32 " process%s of other users not looked at", scan->others,
			    scan->others == 1 ? "" : "es");
}

static void doctor_cleanup_listing(DIR **listing)
{
	if (*listing)
		closedir(*listing);
}

/* Whether the figures of any process are known. What exited ones have left keeps them listed. */
static bool doctor_has_figures(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].alive && !snapshot->processes[i].untracked)
			return true;
	}
	return false;
}

int doctor_look_at_processes(struct doctor *doctor)
{
	CLEANUP(doctor_cleanup_listing) DIR *listing = NULL;
	const struct scan *scan = session_scan(doctor->session);
	uint32_t pid;

	doctor_examine_scan(doctor);
	if (doctor->only_pid) {
		if (proc_start_ticks(&scan->proc, doctor->only_pid) == 0)
			return -ESRCH;
		doctor_examine(doctor, doctor->only_pid);
		return 0;
	}
	listing = proc_list(&scan->proc, ".");
	if (!listing)
		return -errno;
	while ((pid = proc_next(listing)))
		doctor_examine(doctor, pid);
	if (doctor->tracked == 0 && !doctor_has_figures(doctor->snapshot))
		doctor_tell(doctor, DOCTOR_NOTHING_TRACKED, 0, 0,
			    "%" PRIu32 " process%s can be looked at, none is tracked",
			    doctor->looked_at, doctor->looked_at == 1 ? "" : "es");
	return 0;
}
