/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the driver's files. In the class folder a card is "tenstorrent!N"; its attributes tt_* are
 * texts of one line, its link "device" leads to the PCI device, and hwmon/hwmonK below that has the
 * sensors.
 */

#include "source/host/driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/small-file.h"
#include "base/text.h"
#include "model/card.h"
#include "model/snapshot.h"
#include "source/proc/pid-cache.h"

#define DRIVER_LINE 128u              /* longer than any attribute */
#define DRIVER_PIDS_TEXT (64u * 1024) /* of one file */

const char *driver_sys_root(void)
{
	const char *path = secure_getenv("TTMEM_SYS_ROOT");

	return path && *path ? path : "/sys";
}

/* Reads a small file without its newline. False: it is missing or empty. */
static bool driver_line(int folder, const char *name, char ret_line[DRIVER_LINE])
{
	return small_file_read_line(folder, name, ret_line, DRIVER_LINE) > 0;
}

static const char *driver_text(struct snapshot *snapshot, int folder, const char *name)
{
	char line[DRIVER_LINE];

	return driver_line(folder, name, line) ? snapshot_text(snapshot, line, strlen(line)) : NULL;
}

/* Hexadecimal, with 0x or without. 0 = unknown. */
static uint64_t driver_hex(int folder, const char *name)
{
	char line[DRIVER_LINE + 2] = "0x";
	uint64_t value;
	char *text = line + 2;

	if (!driver_line(folder, name, text))
		return 0;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return text_parse_u64(text, &value) == 0 ? value : 0;
	return text_parse_u64(line, &value) == 0 ? value : 0;
}

/* Reads a sensor; @scale is the divisor. */
static void driver_sensor(int folder, const char *name, int64_t scale, enum snapshot_sensor sensor,
			  struct snapshot_telemetry *telemetry)
{
	char line[DRIVER_LINE];
	uint64_t value;
	bool negative;

	if (!driver_line(folder, name, line))
		return;
	negative = line[0] == '-';
	if (text_parse_u64(line + negative, &value) < 0 || value > UINT32_MAX)
		return; /* beyond the range of any sensor */
	telemetry->known |= UINT32_C(1) << sensor;
	telemetry->value[sensor] = (negative ? -(int64_t)value : (int64_t)value) / scale;
}

static void driver_hwmon(int device, struct snapshot_telemetry *telemetry)
{
	CLEANUP_CLOSEDIR DIR *listing = small_file_list(device, "hwmon");
	const struct dirent *item;

	while (listing && (item = readdir(listing))) {
		CLEANUP_CLOSE int folder = -1;

		if (strncmp(item->d_name, "hwmon", 5) != 0)
			continue;
		folder = openat(dirfd(listing), item->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (folder < 0)
			continue;
		driver_sensor(folder, "temp1_input", 1, SNAPSHOT_TEMPERATURE, telemetry);
		driver_sensor(folder, "power1_input", 1000, SNAPSHOT_POWER, telemetry);
		driver_sensor(folder, "in0_input", 1, SNAPSHOT_VOLTAGE, telemetry);
		driver_sensor(folder, "curr1_input", 1, SNAPSHOT_CURRENT, telemetry);
		driver_sensor(folder, "fan1_input", 1, SNAPSHOT_FAN, telemetry);
		return;
	}
}

/* The bus address: the name of the folder to which the link leads. */
static const char *driver_bus(struct snapshot *snapshot, int folder)
{
	char target[256];
	ssize_t n = readlinkat(folder, "device", target, sizeof(target) - 1);
	const char *slash;

	if (n <= 0)
		return NULL;
	target[n] = '\0';
	slash = strrchr(target, '/');
	slash = slash ? slash + 1 : target;
	return *slash ? snapshot_text(snapshot, slash, strlen(slash)) : NULL;
}

/* "235:0"; 0 = unknown. */
static uint64_t driver_node(int folder)
{
	char line[DRIVER_LINE];
	unsigned int major, minor;
	char rest;

	if (!driver_line(folder, "dev", line) ||
	    sscanf(line, "%u:%u%c", &major, &minor, &rest) != 2) /* NOLINT(cert-err34-c) */
		return 0;
	return makedev(major, minor);
}

static int driver_card(struct snapshot *snapshot, int folder, uint32_t number)
{
	CLEANUP_CLOSE int device = openat(folder, "device", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct snapshot_card card = {
		.number = number,
		.node = driver_node(folder),
		.unique_id = driver_hex(folder, "tt_asic_id"),
		.serial = driver_hex(folder, "tt_serial"),
		.card = driver_text(snapshot, folder, "tt_card_type"),
		.bus = driver_bus(snapshot, folder),
		.firmware = driver_text(snapshot, folder, "tt_fw_bundle_ver"),
	};
	const struct card_facts *facts;

	if (card.card && strcmp(card.card, "unknown") == 0)
		card.card = NULL;
	driver_sensor(folder, "tt_aiclk", 1, SNAPSHOT_AICLK, &card.telemetry);
	driver_sensor(folder, "tt_axiclk", 1, SNAPSHOT_AXICLK, &card.telemetry);
	driver_sensor(folder, "tt_arcclk", 1, SNAPSHOT_ARCCLK, &card.telemetry);
	if (device >= 0) {
		driver_hwmon(device, &card.telemetry);
		card.arch = card_arch((uint32_t)driver_hex(device, "vendor"),
				      (uint32_t)driver_hex(device, "device"));
	}
	facts = card_find(card.card);
	if (!card.arch && facts)
		card.arch = facts->arch;
	return snapshot_add_card(snapshot, &card);
}

/* N of "tenstorrent!N"; false for other names. */
static bool driver_is_card(const char *name, uint32_t *ret_number)
{
	static const char before[] = "tenstorrent!";
	uint64_t number;

	if (strncmp(name, before, sizeof(before) - 1) != 0 ||
	    text_parse_u64(name + sizeof(before) - 1, &number) < 0 || number >= BOOK_DEVICES)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static int driver_compare(const void *left, const void *right)
{
	const struct snapshot_card *a = left, *b = right;

	return (a->number > b->number) - (a->number < b->number);
}

int driver_collect_cards(struct snapshot *snapshot)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	const struct dirent *item;
	char path[4096];
	int r = 0;

	if (snprintf(path, sizeof(path), "%s/class/tenstorrent", driver_sys_root()) >=
	    (int)sizeof(path))
		return 0;
	listing = opendir(path);
	if (!listing)
		return errno == ENOMEM ? -ENOMEM : 0; /* no driver */
	while (r == 0 && (item = readdir(listing))) {
		CLEANUP_CLOSE int folder = -1;
		uint32_t number;

		if (!driver_is_card(item->d_name, &number))
			continue;
		folder = openat(dirfd(listing), item->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (folder >= 0)
			r = driver_card(snapshot, folder, number);
	}
	if (snapshot->card_count > 0)
		qsort(snapshot->cards, snapshot->card_count, sizeof(*snapshot->cards),
		      driver_compare);
	return r == -ENOBUFS ? 0 : r;
}

size_t driver_parse_pids(const char *text, uint32_t *ret_pids, size_t max)
{
	size_t count = 0;

	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[16] = {0};
		uint64_t pid;

		memcpy(line, text, bits_min(length, sizeof(line) - 1));
		if (length < sizeof(line) && text_parse_u64(line, &pid) == 0 && pid > 0 &&
		    pid <= INT32_MAX) {
			if (count < max)
				ret_pids[count] = (uint32_t)pid;
			count++;
		}
		text += length;
		text += *text == '\n';
	}
	return count;
}

static int driver_claim(struct pid_cache *pid_cache, struct snapshot *snapshot,
			const struct snapshot_card *card, uint32_t pid)
{
	struct snapshot_claim claim = {
		.device = card->number,
		.facts = {.unique_id = card->unique_id},
		.is_open_only = true,
	};
	struct proc_facts facts;
	int r;

	r = pid_cache_find(pid_cache, pid, &facts, &claim.process);
	if (r < 0)
		return r == -ESRCH ? 0 : r; /* it has just exited */
	claim.process.source = "driver";
	claim.process.untracked = true;
	return snapshot_add_claim(snapshot, &claim);
}

static int driver_pids(struct pid_cache *pid_cache, struct snapshot *snapshot,
		       const struct snapshot_card *card, char *text)
{
	CLEANUP_FREE uint32_t *pids = NULL;
	char path[64];
	size_t count;
	int r = 0;

	snprintf(path, sizeof(path), "driver/tenstorrent/%" PRIu32 "/pids", card->number);
	if (small_file_read(pid_cache_proc(pid_cache)->root, path, text, DRIVER_PIDS_TEXT) < 0)
		return 0; /* an old driver */
	pids = calloc(DRIVER_PIDS_MAX, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	count = driver_parse_pids(text, pids, DRIVER_PIDS_MAX);
	if (count > DRIVER_PIDS_MAX)
		snapshot_note(snapshot,
			      "device %" PRIu32 ": is open in %zu processes; %u are shown",
			      card->number, count, DRIVER_PIDS_MAX);
	for (size_t i = 0; r == 0 && i < bits_min(count, DRIVER_PIDS_MAX); i++)
		r = driver_claim(pid_cache, snapshot, card, pids[i]);
	return r;
}

int driver_collect_pids(struct pid_cache *pid_cache, struct snapshot *snapshot)
{
	CLEANUP_FREE char *text = malloc(DRIVER_PIDS_TEXT);
	int r = text ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < snapshot->card_count; i++)
		r = driver_pids(pid_cache, snapshot, &snapshot->cards[i], text);
	return r == -ENOBUFS ? 0 : r;
}
