/* SPDX-License-Identifier: Apache-2.0 */

/* The table of loaded files, under one lock that only stacks seen for the first time take. */

#include "lib/stack/modules.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/threads/lock.h"
#include "book/write/intern.h"
#include "lib/process/linked.h"
#include "lib/process/program.h"
#include "lib/stack/image.h"
#include "lib/stack/permanent-files.h"
#include "lib/stack/unload-guard.h"
#include "lib/stack/walk.h"

#define MODULES_MAX 1024u           /* files; addresses in any others are unknown */
#define MODULES_CALLBACK_CODE 1024u /* more than the size of dl_iterate_phdr() */

struct modules_entry {
	uintptr_t low; /* of the executable part */
	uintptr_t high;
	uintptr_t base;
	uint32_t id;
	bool is_lasting;
	struct unload_guard_mark mark;
	uint64_t
		unload_guard; /* its bit, set at the first frame if it may be unloaded; 0 = none yet */
};

static struct lock modules_lock;
static struct modules_entry modules_table[MODULES_MAX];
static size_t modules_count;
static bool modules_are_read;
/*
 * In a forked child: the loader's list is never read again, neither here nor in its children. A
 * thread that does not exist in this process may have held the loader's lock during the fork. Files
 * are then looked up one by one if libc can do that without locks; otherwise there are no frames.
 */
static bool modules_are_frozen;
static bool modules_are_open, modules_fork_is_told;
static unsigned long long modules_adds, modules_subs; /* the loader's counts at that time */
static uint32_t modules_changes;

static struct linked_code modules_own, modules_loader, modules_kernel;

/* 0 = there is none. */
static struct linked_code modules_image(uintptr_t address)
{
	return address ? linked_image((const void *)address) : (struct linked_code){0, 0};
}

static bool modules_in(const struct linked_code *range, uintptr_t address)
{
	return address > range->low && address <= range->high;
}

static void modules_forked(void)
{
	modules_fork_is_told = true;
#if !defined(__SANITIZE_THREAD__)
	if (!__libc_single_threaded)
		modules_are_frozen = true;
#endif /* TSan has a thread of its own in every process, which never calls the loader */
}

/* At load time: a fork may precede the first call. Early: other constructors may call us. */
static __attribute__((constructor(101))) void modules_expect_forks(void)
{
	(void)pthread_atfork(NULL, NULL, modules_forked); /* fails only without memory */
}

void modules_open(void)
{
	int saved_errno = errno; /* getauxval() sets ENOENT for missing entries */

	/* In a child: its holder is gone. Or it was made by _Fork(), which calls no handlers. */
	if (modules_lock.word & LOCK_HELD ||
	    (modules_are_open && !modules_fork_is_told && !__libc_single_threaded))
		modules_are_frozen = true;
	modules_are_open = true;
	modules_fork_is_told = false;
	modules_lock = LOCK_NULL;
	modules_count = 0;
	modules_are_read = false;
	modules_own = linked_code();
	modules_loader = modules_image(program_loader());
	modules_kernel = modules_image(getauxval(AT_SYSINFO_EHDR));
	errno = saved_errno;
}

uint32_t modules_generation(void)
{
	return __atomic_load_n(&modules_changes, __ATOMIC_ACQUIRE);
}

bool modules_is_own(uintptr_t address)
{
	return modules_in(&modules_own, address);
}

/*
 * The address to which signal handlers return: on x86-64 a function of libc that the kernel is
 * given with every handler, elsewhere the kernel's own. 0 = unknown: no handler is installed, so we
 * are in none.
 */
static uintptr_t modules_trampoline(void)
{
#if defined(__x86_64__)
	static uintptr_t known;
	uintptr_t found = __atomic_load_n(&known, __ATOMIC_RELAXED);
	int saved_errno = errno;
	/* The kernel's layout, which differs from libc's. */
	struct {
		uintptr_t handler;
		unsigned long flags;
		uintptr_t restorer;
		uint64_t mask;
	} action;

	for (int number = 1; !found && number < _NSIG; number++) {
		memset(&action, 0, sizeof(action));
		if (syscall(SYS_rt_sigaction, number, NULL, &action, sizeof(action.mask)) == 0 &&
		    action.handler > 1)
			found = action.restorer;
	}
	__atomic_store_n(&known, found, __ATOMIC_RELAXED);
	errno = saved_errno;
	return found;
#else
	return 0;
#endif
}

/* Whether @address is a return address in dl_iterate_phdr(). */
static bool modules_is_callback(uintptr_t address)
{
	uintptr_t iterate = (uintptr_t)&dl_iterate_phdr;

	return address > iterate && address - iterate < MODULES_CALLBACK_CODE;
}

/*
 * Whether one of the addresses is in the loader, or the loader may have been interrupted. By rules a
 * handler is recognized without asking; a chain of frame pointers only shows where it returns to.
 */
static bool modules_is_delicate(const struct walk_found *found)
{
	uintptr_t trampoline = walk_is_sure() ? 0 : modules_trampoline();

	if (found->is_interrupted)
		return true;
	for (size_t i = 0; i < found->count; i++) {
		uintptr_t address = found->addresses[i];

		if (modules_in(&modules_loader, address) || modules_in(&modules_kernel, address) ||
		    modules_is_callback(address) || address == trampoline)
			return true;
	}
	return false;
}

bool modules_may_call(const struct walk_found *found)
{
	return walk_is_sure() && !found->is_cut && found->count > 0 &&
	       !__atomic_load_n(&modules_are_frozen, __ATOMIC_RELAXED) &&
	       !modules_is_delicate(found);
}

/* Paths that can be opened: the program's is empty, and others may be relative. */
static uint32_t modules_path(struct writer *writer, const char *name, uintptr_t start)
{
	static char path[2 * PATH_MAX]; /* under the lock; too large for the stack */
	long n = 0;

	if (!*name) {
		if (!program_path(start, path))
			return 0;
		return intern_string(writer, path, BOOK_PATH_MAX);
	}
	if (*name != '/' && strchr(name, '/') && strlen(name) < PATH_MAX)
		n = syscall(SYS_getcwd, path, PATH_MAX - 1);
	if (n <= 1) /* it counts the final NUL */
		return intern_string(writer, name, BOOK_PATH_MAX);
	path[n - 1] = '/';
	memcpy(path + n, name, strlen(name) + 1);
	return intern_string(writer, path, BOOK_PATH_MAX);
}

static void modules_add(struct writer *writer, const struct dl_phdr_info *info, bool is_lasting)
{
	struct modules_entry *entry = &modules_table[modules_count];
	struct book_module module = {.base = info->dlpi_addr};
	const char *name = info->dlpi_name ? info->dlpi_name : "";

	if (modules_count == MODULES_MAX)
		return;
	*entry = (struct modules_entry){
		.low = UINTPTR_MAX, .base = info->dlpi_addr, .is_lasting = is_lasting};
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t low = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		module.size = bits_max(module.size, header->p_vaddr + header->p_memsz);
		if (header->p_flags & PF_X) {
			entry->low = bits_min(entry->low, low);
			entry->high = bits_max(entry->high, low + header->p_memsz);
		}
	}
	if (entry->high == 0)
		return;
	unload_guard_mark(image_start(info), image_build_id(info, &module), name, &entry->mark);
	module.path = modules_path(writer, name, image_start(info));
	entry->id = intern_module(writer, &module);
	modules_count++;
}

/* Addresses may belong to different files now. */
static void modules_rise(void)
{
	for (size_t i = 0; i < modules_count; i++)
		modules_table[i].unload_guard = 0;
	unload_guard_forget(__atomic_add_fetch(&modules_changes, 1, __ATOMIC_RELEASE));
}

/* State of one walk over the loader's list. */
struct modules_walk {
	struct writer *writer;
	bool is_begun;
};

/* Callers serialize, as for everything here. */
static const char *modules_name(const char *name)
{
	static char copy[PATH_MAX];

	linked_copy(name, copy, sizeof(copy));
	return copy;
}

/* Called by the loader for each file; if nothing has changed, for the first one only. */
static int modules_see(struct dl_phdr_info *info, size_t size, void *context)
{
	struct modules_walk *walk = context;
	struct dl_phdr_info mine;

	(void)size; /* the counts are older than other features of libc that we need */
	if (!walk->is_begun) {
		if (modules_are_read && info->dlpi_adds == modules_adds &&
		    info->dlpi_subs == modules_subs)
			return 1;
		/*
		 * Invalidates what was cached under addresses that may belong to a different file
		 * now. The first walk changes nothing, nor does a new book.
		 */
		if (modules_adds > 0 &&
		    (info->dlpi_adds != modules_adds || info->dlpi_subs != modules_subs))
			modules_rise();
		modules_adds = info->dlpi_adds;
		modules_subs = info->dlpi_subs;
		modules_are_read = true;
		modules_count = 0;
		permanent_files_begin();
		walk->is_begun = true;
	}
	mine = *info;
	mine.dlpi_name = modules_name(info->dlpi_name);
	modules_add(walk->writer, &mine, permanent_files_meet(&mine));
	return 0;
}

static struct modules_entry *modules_find(uintptr_t address)
{
	for (size_t i = 0; i < modules_count; i++) {
		if (address > modules_table[i].low && address <= modules_table[i].high)
			return &modules_table[i];
	}
	return NULL;
}

/* Drops entries of other files at the same place. */
static void modules_drop(const struct linked_file *file)
{
	for (size_t i = 0; i < modules_count;) {
		if (modules_table[i].low < file->high && modules_table[i].high > file->low)
			modules_table[i] = modules_table[--modules_count];
		else
			i++;
	}
}

/* A file on the caller's stack, so it cannot be unloaded meanwhile. Takes no lock. */
static void modules_meet(struct writer *writer, uintptr_t address)
{
	const struct modules_entry *was = modules_find(address);
	uint32_t before = was ? was->id : 0;
	bool is_replaced = was && was->unload_guard;
	struct dl_phdr_info info = {0};
	struct linked_file file;
	const ElfW(Ehdr) * image;

	if (was && (was->is_lasting ||
		    (was->unload_guard && unload_guard_hold(was->unload_guard, was->unload_guard,
							    modules_generation()))))
		return;
	if (!linked_find(address, &file))
		return;
	image = (const void *)file.low;
	/* Only the first page of the file is known to be mapped. */
	if (memcmp(image->e_ident, ELFMAG, SELFMAG) != 0 ||
	    image->e_phentsize != sizeof(ElfW(Phdr)) || image->e_phoff > IMAGE_PAGE ||
	    image->e_phnum > (IMAGE_PAGE - image->e_phoff) / sizeof(ElfW(Phdr)))
		return;
	info.dlpi_addr = linked_base(&file);
	info.dlpi_name = modules_name(linked_path(&file));
	info.dlpi_phdr = (const void *)((const char *)image + image->e_phoff);
	info.dlpi_phnum = image->e_phnum;
	modules_drop(&file);
	modules_add(writer, &info, permanent_files_knows(info.dlpi_addr));
	was = modules_find(address);
	if (is_replaced || (before && was && was->id != before))
		modules_rise();
}

/* Return: whether files can be found without the loader's lock. */
static bool modules_meet_all(struct writer *writer, const uintptr_t *addresses, size_t count)
{
	for (size_t i = 0; linked_can_find() && i < count; i++)
		modules_meet(writer, addresses[i]);
	return linked_can_find();
}

/* For a program without a loader: nothing is loaded or unloaded, and there is nobody to ask. */
static void modules_read_program(struct writer *writer)
{
	struct dl_phdr_info info;

	if (modules_are_read)
		return;
	linked_program(&info);
	modules_add(writer, &info, true);
	modules_are_read = true;
}

/* Brings the table up to date as far as @addresses require. Return: whether that was possible. */
static bool modules_refresh(struct writer *writer, const uintptr_t *addresses, size_t count,
			    bool is_delicate)
{
	struct modules_walk walk = {.writer = writer};

	if (linked_is_static()) {
		modules_read_program(writer);
		return true;
	}
	if (modules_are_frozen || is_delicate)
		return modules_meet_all(writer, addresses, count);
	(void)dl_iterate_phdr(modules_see, &walk); /* returns what the callback returned */
	return true;
}

/* Adds what a frame in this file requires so that its stack can be cached. */
static void modules_watch(struct modules_entry *entry, uintptr_t address,
			  struct modules_validity *validity)
{
	/* Where libc cannot find files without a lock, files are assumed to stay. */
	if (entry->is_lasting || !linked_can_find())
		return;
	if (!entry->unload_guard)
		entry->unload_guard = unload_guard_set(address, &entry->mark);
	if (!entry->unload_guard)
		validity->is_fleeting = true;
	validity->guards |= entry->unload_guard;
}

/*
 * Takes the lock. Not if a thread that holds it may be waiting for the loader, while this thread is
 * inside the loader or has interrupted it. Only frames that are certain are looked up one by one.
 */
static bool modules_begin(bool is_delicate)
{
	if (!is_delicate)
		return lock_take(&modules_lock);
	return walk_is_sure() && (linked_can_find() || linked_is_static()) &&
	       lock_try(&modules_lock);
}

size_t modules_frames(struct writer *writer, const struct walk_found *found, size_t count,
		      struct book_frame *ret_frames, struct modules_validity *ret_validity)
{
	struct modules_validity validity = {.generation = modules_generation(),
					    .is_fleeting = true};
	const uintptr_t *addresses = found->addresses;
	bool is_delicate = modules_is_delicate(found);
	int saved_errno = errno;
	size_t n = 0;

	*ret_validity = validity;
	if (!modules_begin(is_delicate))
		return 0;
	validity.is_fleeting = false;
	if (!modules_refresh(writer, addresses, count, is_delicate))
		count = 0;
	for (; n < count; n++) {
		struct modules_entry *entry = modules_find(addresses[n]);

		if (!entry || !entry->id)
			break;
		ret_frames[n] = (struct book_frame){.value = addresses[n] - entry->base,
						    .module = entry->id};
		modules_watch(entry, addresses[n], &validity);
		if (n == 0)
			validity.first = validity.guards;
	}
	validity.generation = modules_generation();
	*ret_validity = validity;
	lock_drop(&modules_lock);
	errno = saved_errno;
	return n;
}
