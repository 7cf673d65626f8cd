/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the driver's files. In the class folder a card is "tenstorrent!N"; its attributes tt_* are
 * texts of one line, its link "device" leads to the PCI device, and hwmon/hwmonK below that has the
 * sensors and their limits.
 */

#include "source/host/driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/text.h"
#include "model/cards/card.h"
#include "model/snapshot.h"
#include "source/proc/pid-cache.h"

#define DRIVER_LINE 128u              /* longer than any attribute */
#define DRIVER_PIDS_TEXT (64u * 1024) /* of one file */
#define DRIVER_PROC "driver/tenstorrent"

const char *driver_sys_root(void)
{
	const char *path = secure_getenv("TTMEM_SYS_ROOT");

	return path && *path ? path : "/sys";
}

/*
 * How the attributes of a card were answered. During a reset all of them fail with ENODATA. A chip
 * that has fallen off the bus is read as ones, which the driver converts as if it were a value.
 */
struct driver_answers {
	bool has_value, has_ones, has_nothing;
	bool is_gone; /* ENODEV: the driver is letting it go */
};

/* Reads a small file without its newline. False: it is missing or has no data. */
static bool driver_line(int folder, const char *name, char ret_line[DRIVER_LINE],
			struct driver_answers *answers)
{
	ssize_t length = small_file_read_line(folder, name, ret_line, DRIVER_LINE);

	answers->has_nothing |= length == -ENODATA;
	answers->is_gone |= length == -ENODEV;
	return length > 0;
}

static const char *driver_text(struct snapshot *snapshot, int folder, const char *name,
			       struct driver_answers *answers)
{
	char line[DRIVER_LINE];

	if (!driver_line(folder, name, line, answers))
		return NULL;
	if (strcmp(line, "255.255.255.255") == 0) {
		answers->has_ones = true;
		return NULL;
	}
	/* A card type that the driver does not know may be made of ones, or new. */
	if (strcmp(line, "unknown") == 0)
		return NULL;
	answers->has_value = true;
	return snapshot_text(snapshot, line, strlen(line));
}

/* Hexadecimal, with 0x or without. 0 = unknown. */
static uint64_t driver_hex(int folder, const char *name, struct driver_answers *answers)
{
	char line[DRIVER_LINE + 2] = "0x";
	uint64_t value;
	char *text = line + 2;
	bool has_prefix;

	if (!driver_line(folder, name, text, answers))
		return 0;
	has_prefix = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	if (text_parse_u64(has_prefix ? text : line, &value) < 0)
		return 0;
	answers->has_ones |= value == UINT64_MAX;
	answers->has_value |= value != UINT64_MAX;
	return value == UINT64_MAX ? 0 : value;
}

/* A counter of 32 bits. False: it is not known. */
static bool driver_count(int folder, const char *name, uint32_t *ret_value,
			 struct driver_answers *answers)
{
	char line[DRIVER_LINE];
	uint64_t value;

	if (!driver_line(folder, name, line, answers) || text_parse_u64(line, &value) < 0)
		return false;
	answers->has_ones |= value == UINT32_MAX;
	answers->has_value |= value < UINT32_MAX;
	*ret_value = (uint32_t)bits_min(value, UINT32_MAX);
	return value < UINT32_MAX;
}

/* A sensor's file: our unit is @scale of its units. No card has less than @floor, or @ceiling or more. */
struct driver_sensor {
	const char *name;
	const char *limit; /* NULL = has none */
	int64_t scale;
	uint64_t ceiling;
	int64_t floor;
};

static const struct driver_sensor driver_sensors[SNAPSHOT_SENSORS] = {
	[SNAPSHOT_TEMPERATURE] = {"temp1_input", "temp1_max", 1, 1000000, -100000},
	[SNAPSHOT_POWER] = {"power1_input", "power1_max", 1000, UINT64_C(4000000000)},
	[SNAPSHOT_VOLTAGE] = {"in0_input", "in0_max", 1, 0xffff},
	[SNAPSHOT_CURRENT] = {"curr1_input", "curr1_max", 1, 10000000},
	[SNAPSHOT_AICLK] = {"tt_aiclk", NULL, 1, 0xffff},
	[SNAPSHOT_AXICLK] = {"tt_axiclk", NULL, 1, 0xffff},
	[SNAPSHOT_ARCCLK] = {"tt_arcclk", NULL, 1, 0xffff},
	[SNAPSHOT_FAN] = {"fan1_input", NULL, 1, 0xffff},
};

static bool driver_value(int folder, const char *name, const struct driver_sensor *file,
			 int64_t *ret_value, struct driver_answers *answers)
{
	char line[DRIVER_LINE];
	uint64_t value;
	bool negative;

	if (!driver_line(folder, name, line, answers))
		return false;
	negative = line[0] == '-';
	if (text_parse_u64(line + negative, &value) < 0)
		return false;
	answers->has_ones |= value >= file->ceiling;
	if (value >= file->ceiling || (negative && -(int64_t)value < file->floor))
		return false;
	answers->has_value = true;
	*ret_value = (negative ? -(int64_t)value : (int64_t)value) / file->scale;
	return true;
}

/* Reads the sensors from @from to @to and their limits, which are all in @folder. */
static void driver_read_sensors(int folder, enum snapshot_sensor from, enum snapshot_sensor to,
				struct snapshot_card *card, struct driver_answers *answers)
{
	struct snapshot_telemetry *limits = &card->condition.limits;

	for (uint32_t i = from; i <= to; i++) {
		const struct driver_sensor *file = &driver_sensors[i];
		uint32_t bit = UINT32_C(1) << i;

		if (driver_value(folder, file->name, file, &card->telemetry.value[i], answers))
			card->telemetry.known |= bit;
		/* No card has a limit of 0: that is how firmware says that it has none. */
		if (file->limit &&
		    driver_value(folder, file->limit, file, &limits->value[i], answers) &&
		    limits->value[i] > 0)
			limits->known |= bit;
	}
}

static void driver_hwmon(int device, struct snapshot_card *card, struct driver_answers *answers)
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
		driver_read_sensors(folder, SNAPSHOT_TEMPERATURE, SNAPSHOT_CURRENT, card, answers);
		driver_read_sensors(folder, SNAPSHOT_FAN, SNAPSHOT_FAN, card, answers);
		return;
	}
}

static uint32_t driver_state(const struct driver_answers *answers)
{
	if (answers->has_value)
		return SNAPSHOT_PRESENT;
	if (answers->is_gone)
		return SNAPSHOT_GONE;
	if (answers->has_ones)
		return SNAPSHOT_NOT_ANSWERING;
	return answers->has_nothing ? SNAPSHOT_IN_RESET : SNAPSHOT_PRESENT;
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

	if (small_file_read_line(folder, "dev", line, sizeof(line)) <= 0 ||
	    sscanf(line, "%u:%u%c", &major, &minor, &rest) != 2) /* NOLINT(cert-err34-c) */
		return 0;
	return makedev(major, minor);
}

/* The kernel does not use an inode number of sysfs twice. */
static uint64_t driver_folder(int folder)
{
	struct stat st;

	return fstat(folder, &st) == 0 ? st.st_ino : 0;
}

/* What the PCI device tells, which the kernel keeps and which so survives a reset. */
static void driver_device(int folder, struct snapshot_card *card, struct driver_answers *answers)
{
	CLEANUP_CLOSE int device = openat(folder, "device", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct driver_answers aside = {0};

	if (device < 0)
		return;
	driver_hwmon(device, card, answers);
	card->arch = card_arch((uint32_t)driver_hex(device, "vendor", &aside),
			       (uint32_t)driver_hex(device, "device", &aside));
}

static int driver_card(struct snapshot *snapshot, int folder, uint32_t number)
{
	struct driver_answers answers = {0};
	struct snapshot_card card = {
		.number = number,
		.node = driver_node(folder),
		.folder = driver_folder(folder),
		.unique_id = driver_hex(folder, "tt_asic_id", &answers),
		.serial = driver_hex(folder, "tt_serial", &answers),
		.card = driver_text(snapshot, folder, "tt_card_type", &answers),
		.bus = driver_bus(snapshot, folder),
		.firmware = driver_text(snapshot, folder, "tt_fw_bundle_ver", &answers),
	};
	struct snapshot_condition *condition = &card.condition;
	const struct card_facts *facts = card_find(card.card);

	driver_read_sensors(folder, SNAPSHOT_AICLK, SNAPSHOT_ARCCLK, &card, &answers);
	condition->has_heartbeat =
		driver_count(folder, "tt_heartbeat", &condition->heartbeat, &answers);
	condition->has_trips =
		driver_count(folder, "tt_therm_trip_count", &condition->trips, &answers);
	driver_device(folder, &card, &answers);
	if (!card.arch && facts)
		card.arch = facts->arch;
	condition->state = driver_state(&answers);
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

	return bits_compare(a->number, b->number);
}

int driver_collect_cards(struct snapshot *snapshot, bool *ret_complete)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	const struct dirent *item;
	char path[4096];
	int r = 0;

	*ret_complete = true;
	if (snprintf(path, sizeof(path), "%s/class/tenstorrent", driver_sys_root()) >=
	    (int)sizeof(path))
		return 0;
	listing = opendir(path);
	if (!listing) {
		*ret_complete = errno == ENOENT; /* no driver */
		return errno == ENOMEM ? -ENOMEM : 0;
	}
	while (r == 0 && (item = readdir(listing))) {
		CLEANUP_CLOSE int folder = -1;
		uint32_t number;

		if (!driver_is_card(item->d_name, &number))
			continue;
		folder = openat(dirfd(listing), item->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (folder >= 0)
			r = driver_card(snapshot, folder, number);
		else if (errno != ENOENT) /* just removed */
			*ret_complete = false;
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
			struct snapshot_card *card, uint32_t pid)
{
	struct snapshot_claim claim = {
		.device = card->number,
		.facts = {.unique_id = card->unique_id},
		.is_open_only = true,
	};
	struct proc_facts facts;
	int r;

	r = pid_cache_find(pid_cache, pid, &facts, &claim.process);
	if (r == -ESRCH && pid != (uint32_t)getpid())
		card->condition.ended++;
	if (r < 0)
		return r == -ESRCH ? 0 : r;
	claim.process.source = "driver";
	claim.process.untracked = true;
	return snapshot_add_claim(snapshot, &claim);
}

size_t driver_count_outside(const char *text)
{
	size_t count = 0;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		count += line[0] == '0' && (line[1] == '\n' || line[1] == '\0');
	return count;
}

int driver_read_pids(const struct proc *proc, uint32_t number, uint32_t ret_pids[DRIVER_PIDS_MAX],
		     size_t *ret_count, size_t *ret_outside)
{
	CLEANUP_FREE char *text = malloc(DRIVER_PIDS_TEXT);
	char path[64];

	*ret_count = *ret_outside = 0;
	if (!text)
		return -ENOMEM;
	snprintf(path, sizeof(path), DRIVER_PROC "/%" PRIu32 "/pids", number);
	if (small_file_read(proc->root, path, text, DRIVER_PIDS_TEXT) < 0)
		return 0; /* an old driver */
	*ret_outside = driver_count_outside(text);
	*ret_count = driver_parse_pids(text, ret_pids, DRIVER_PIDS_MAX);
	return 0;
}

static int driver_pids(struct pid_cache *pid_cache, struct snapshot *snapshot,
		       struct snapshot_card *card)
{
	CLEANUP_FREE uint32_t *pids = calloc(DRIVER_PIDS_MAX, sizeof(*pids));
	size_t count, outside;
	int r;

	if (!pids)
		return -ENOMEM;
	r = driver_read_pids(pid_cache_proc(pid_cache), card->number, pids, &count, &outside);
	card->condition.outside = (uint32_t)outside;
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
	int r = 0;

	/* Without a driver nobody can have one of its nodes. */
	if (faccessat(pid_cache_proc(pid_cache)->root, DRIVER_PROC, F_OK, 0) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < snapshot->card_count; i++) {
		/* Its number may be another card's now. */
		if (snapshot->cards[i].condition.state != SNAPSHOT_GONE)
			r = driver_pids(pid_cache, snapshot, &snapshot->cards[i]);
	}
	return r == -ENOBUFS ? 0 : r;
}
