/* SPDX-License-Identifier: Apache-2.0 */

/* Creates and checks the memory file. Its pages are reserved before use: a store must not fail. */

#include "legacy/server/legacy-ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LEDGER_MAGIC UINT64_C(0x5245564f444c4f54) /* "TOLDOVER" */
#define LEDGER_VERSION 1u
#define LEDGER_SIZE ((off_t)sizeof(struct legacy_ledger))
#define LEDGER_PAGE 4096u

static int ledger_map(int fd, struct legacy_ledger **ret_ledger)
{
	void *base = mmap(NULL, sizeof(struct legacy_ledger), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	/* Children and core dumps do not need it; if the advice fails, they merely get it. */
	(void)madvise(base, sizeof(struct legacy_ledger), MADV_DONTFORK);
	(void)madvise(base, sizeof(struct legacy_ledger), MADV_DONTDUMP);
	*ret_ledger = base;
	return 0;
}

static int ledger_reserve(int fd, off_t offset, off_t length)
{
	int r;

	do
		r = fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, length);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int legacy_ledger_new(struct legacy_ledger **ret_ledger, int *ret_fd)
{
	CLEANUP_CLOSE int fd = memfd_create("old-connections", MFD_CLOEXEC);
	int r;

	if (fd < 0 || ftruncate(fd, LEDGER_SIZE) < 0)
		return -errno;
	r = ledger_reserve(fd, 0, offsetof(struct legacy_ledger, spills));
	if (r == 0)
		r = ledger_map(fd, ret_ledger);
	if (r < 0)
		return r;
	(*ret_ledger)->size = sizeof(struct legacy_ledger);
	(*ret_ledger)->version = LEDGER_VERSION;
	(*ret_ledger)->magic = LEDGER_MAGIC;
	*ret_fd = cleanup_steal_fd(&fd);
	return 0;
}

static bool ledger_is_valid(const struct legacy_ledger *ledger)
{
	if (ledger->magic != LEDGER_MAGIC || ledger->size != sizeof(*ledger) ||
	    ledger->version != LEDGER_VERSION || ledger->owner > LEGACY_CONNECTIONS_MAX ||
	    ledger->wanted > LEGACY_READ_SIZE || ledger->length > ledger->wanted ||
	    ledger->position > ledger->wanted)
		return false;
	for (uint32_t i = 0; i < LEGACY_CONNECTIONS_MAX; i++) {
		const struct legacy_slot *slot = &ledger->slots[i];

		if (slot->spill_end > LEGACY_READ_SIZE ||
		    (slot->spill_end > 0 && slot->spill_begin > slot->spill_end))
			return false;
	}
	return true;
}

int legacy_ledger_listener(int fd, uint64_t *ret_device, uint64_t *ret_inode)
{
	uint64_t head[3];

	if (pread(fd, head, sizeof(head), 0) != sizeof(head) || head[0] != LEDGER_MAGIC)
		return -EBADMSG;
	*ret_device = head[offsetof(struct legacy_ledger, listener_device) / sizeof(*head)];
	*ret_inode = head[offsetof(struct legacy_ledger, listener_inode) / sizeof(*head)];
	return 0;
}

int legacy_ledger_open(struct legacy_ledger **ret_ledger, int fd)
{
	struct legacy_ledger *ledger = NULL;
	struct stat file;
	int r;

	if (fstat(fd, &file) < 0)
		return -errno;
	if (!S_ISREG(file.st_mode) || file.st_size != LEDGER_SIZE)
		return -EBADMSG;
	r = ledger_map(fd, &ledger);
	if (!ledger)
		return r;
	if (!ledger_is_valid(ledger)) {
		legacy_ledger_close(ledger);
		return -EBADMSG;
	}
	*ret_ledger = ledger;
	return 0;
}

void legacy_ledger_close(struct legacy_ledger *ledger)
{
	if (ledger)
		(void)munmap(ledger, sizeof(*ledger)); /* ours and whole: cannot fail */
}

uint8_t *legacy_ledger_spilled(struct legacy_ledger *ledger, const struct legacy_slot *slot)
{
	return ledger->spills[slot - ledger->slots];
}

static off_t ledger_spill_offset(const struct legacy_ledger *ledger, const struct legacy_slot *slot)
{
	return (off_t)(offsetof(struct legacy_ledger, spills) +
		       (size_t)(slot - ledger->slots) * LEGACY_READ_SIZE);
}

int legacy_ledger_spill(struct legacy_ledger *ledger, int fd, struct legacy_slot *slot,
			const uint8_t *bytes, uint32_t length)
{
	if (length > slot->spill_room) {
		uint32_t room = (length + LEDGER_PAGE - 1) / LEDGER_PAGE * LEDGER_PAGE;

		if (ledger_reserve(fd, ledger_spill_offset(ledger, slot), room) < 0)
			return -ENOSPC;
		slot->spill_room = room;
	}
	memcpy(legacy_ledger_spilled(ledger, slot), bytes, length);
	slot->spill_begin = 0;
	LEGACY_LEDGER_ORDER();
	slot->spill_end = length;
	LEGACY_LEDGER_ORDER();
	return 0;
}

void legacy_ledger_unspill(struct legacy_ledger *ledger, int fd, struct legacy_slot *slot, bool all)
{
	/* A client that asks will ask again: it keeps its first page. */
	uint32_t kept = all ? 0 : LEDGER_PAGE;

	slot->spill_end = 0;
	LEGACY_LEDGER_ORDER();
	slot->spill_begin = 0;
	if (slot->spill_room > kept) {
		/* If this fails, the memory is used by the next spill. */
		(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				ledger_spill_offset(ledger, slot) + kept, LEGACY_READ_SIZE - kept);
		slot->spill_room = kept;
	}
}
