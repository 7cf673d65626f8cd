/* SPDX-License-Identifier: Apache-2.0 */

/* Which rows of tt-metal's regions a reader trusts, and which regions it reads. */

#include "source/host/region.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/host/region-list.h"
#include "source/host/testing/host-testing.h"
#include "source/proc/maps-budget.h"

#define CHIP UINT64_C(77)
#define FILE_NAME "shm/tt_device_77_memory"
#define NARROW HOST_TESTING_NARROW

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void give(const char *name, uint32_t user, mode_t mode)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", unit_dir(), name);
	assert(chown(path, user, user) == 0 && chmod(path, mode) == 0);
}

/* Whether the only row there is is shown as a claim, and not counted. */
static void assert_claimed(uint32_t pid, uint32_t user)
{
	struct snapshot *snapshot = host_testing_look();
	const struct snapshot_process *process = snapshot->processes;

	assert(snapshot->process_count == 1 && host_testing_total(snapshot) == 0);
	assert(process->unproven && process->stale && !process->alive);
	assert(process->id.pid == pid && process->user_id == user);
	snapshot_free(snapshot);
}

UNIT(another_users_process_cannot_have_written_it)
{
	struct snapshot *snapshot;
	char path[512];

	if (getuid() != 0)
		unit_skip("needs to give files away");
	host_testing_start();
	host_testing_process(100, "python3", 50);
	host_testing_text("proc/100/maps", "");
	host_testing_text("proc/100/maps", "00400000-00401000 r-xp 00000000 00:01 5 /bin/x\n");
	host_testing_region(4, CHIP, 0);
	host_testing_row(4, 0, 100, 1000, now());
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	snprintf(path, sizeof(path), "%s/%s", unit_dir(), FILE_NAME);
	assert(chown(path, 65534, 65534) == 0);
	snapshot = host_testing_look();
	assert(snapshot->processes[0].unproven && host_testing_total(snapshot) == 0);
	snapshot_free(snapshot);
}

/* Puts a region of another user there, which only this user can write to. */
static void foreign(uint64_t id, uint32_t pid, struct stat *ret_file)
{
	char name[64], path[512];

	host_testing_region(4, id, (uint32_t)(id - CHIP));
	host_testing_row(4, 0, pid, 1000, now());
	snprintf(name, sizeof(name), "shm/tt_device_%" PRIu64 "_memory", id);
	host_testing_write(name, host_testing_bytes, NARROW);
	snprintf(path, sizeof(path), "%s/%s", unit_dir(), name);
	assert(chown(path, 65534, 65534) == 0 && stat(path, ret_file) == 0);
}

static void mapping(FILE *maps, const struct stat *file)
{
	fprintf(maps, "00400000-00401000 rw-s 00000000 %02x:%02x %" PRIu64 " /r\n",
		major(file->st_dev), minor(file->st_dev), (uint64_t)file->st_ino);
}

/* As the container's process @pid, which is @ns_pid inside. */
static void contained(uint32_t pid, uint32_t ns_pid)
{
	char path[64], text[256];

	host_testing_process(pid, "python3", 50);
	snprintf(path, sizeof(path), "proc/%" PRIu32 "/status", pid);
	snprintf(text, sizeof(text),
		 "Name:\tpython3\nPid:\t%" PRIu32 "\nUid:\t%d\t%d\t%d\t%d\nNSpid:\t%" PRIu32
		 "\t%" PRIu32 "\n",
		 pid, (int)getuid(), (int)getuid(), (int)getuid(), (int)getuid(), pid, ns_pid);
	host_testing_text(path, text);
}

static void maps(uint32_t pid, const struct stat *file)
{
	char path[512];
	FILE *maps;

	snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/maps", unit_dir(), pid);
	maps = fopen(path, "we");
	assert(maps);
	fprintf(maps, "00400000-00401000 r-xp 00000000 00:01 5 /bin/x\n");
	if (file)
		mapping(maps, file);
	assert(fclose(maps) == 0);
}

/* The same user runs both, and the region is private: only the mapping tells them apart. */
UNIT(a_row_counts_for_the_process_that_has_the_region_mapped)
{
	struct snapshot *snapshot;
	struct stat file;
	char path[512];

	host_testing_start();
	host_testing_region(4, CHIP, 0);
	host_testing_row(4, 0, 100, 1000, now());
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	snprintf(path, sizeof(path), "%s/%s", unit_dir(), FILE_NAME);
	assert(stat(path, &file) == 0);
	host_testing_process(100, "innocent", 50);
	maps(100, NULL);
	snapshot = host_testing_look();
	assert(snapshot->process_count == 1 && snapshot->processes[0].unproven);
	assert(host_testing_total(snapshot) == 0);
	snapshot_free(snapshot);

	contained(5000, 100);
	maps(5000, &file);
	snapshot = host_testing_look();
	assert(snapshot->process_count == 1 && snapshot->processes[0].alive);
	assert(snapshot->processes[0].id.pid == 5000 && snapshot->processes[0].ns_pid == 100);
	assert(host_testing_total(snapshot) == 1000 && snapshot->note_count == 0);
	snapshot_free(snapshot);
}

UNIT(a_row_of_the_owners_process_counts_where_mappings_are_hidden)
{
	struct snapshot *snapshot;

	host_testing_start();
	host_testing_process(100, "python3", 50); /* without a list of mappings */
	host_testing_region(4, CHIP, 0);
	host_testing_row(4, 0, 100, 1000, now());
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	snapshot = host_testing_look();
	assert(snapshot->processes[0].alive && host_testing_total(snapshot) == 1000);
	snapshot_free(snapshot);
}

/* A fifo, because what was read from it cannot be read again. */
UNIT(the_mappings_of_a_process_are_read_once_for_all_regions)
{
	struct snapshot *snapshot;
	struct stat files[2];
	char path[512];
	FILE *maps;
	int keep;

	if (getuid() != 0)
		unit_skip("needs to give files away");
	host_testing_start();
	host_testing_process(100, "python3", 50);
	foreign(CHIP, 100, &files[0]);
	foreign(CHIP + 1, 100, &files[1]);
	snprintf(path, sizeof(path), "%s/proc/100/maps", unit_dir());
	assert(mkfifo(path, 0600) == 0);
	keep = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	maps = fopen(path, "we");
	assert(keep >= 0 && maps);
	mapping(maps, &files[0]);
	mapping(maps, &files[1]);
	assert(fclose(maps) == 0);
	snapshot = host_testing_look();
	assert(snapshot->process_count == 1 && snapshot->processes[0].alive);
	assert(host_testing_total(snapshot) == 2000 && snapshot->note_count == 0);
	snapshot_free(snapshot);
	assert(close(keep) == 0);
}

UNIT(no_more_mappings_are_read_than_a_program_has)
{
	struct snapshot *snapshot;
	struct stat file;
	char path[512];
	FILE *maps;

	if (getuid() != 0)
		unit_skip("needs to give files away");
	host_testing_start();
	host_testing_process(100, "python3", 50);
	foreign(CHIP, 100, &file);
	snprintf(path, sizeof(path), "%s/proc/100/maps", unit_dir());
	maps = fopen(path, "we");
	assert(maps);
	for (size_t i = 0; i < MAPS_BUDGET_ONE / 32; i++)
		fprintf(maps, "00400000-00401000 rw-p 00000000 00:00 0\n");
	mapping(maps, &file);
	assert(fclose(maps) == 0);
	snapshot = host_testing_look();
	assert(snapshot->processes[0].stale && host_testing_total(snapshot) == 0);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "too many mappings"));
	snapshot_free(snapshot);
}

/* Others can write to it, so it proves nothing of a process that one may not look into. */
UNIT(a_row_of_a_hidden_process_in_a_shared_region_is_a_claim)
{
	host_testing_start();
	host_testing_process(100, "python3", 50); /* without a list of mappings */
	host_testing_region(4, CHIP, 0);
	host_testing_row(4, 0, 100, 1000, now());
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	give(FILE_NAME, getuid(), 0666);
	assert_claimed(100, getuid());
	give(FILE_NAME, getuid(), 0620);
	assert_claimed(100, getuid());
}

UNIT(a_row_of_a_hidden_process_in_another_users_region_is_a_claim)
{
	if (getuid() != 0)
		unit_skip("needs to give files away");
	host_testing_start();
	host_testing_process(100, "python3", 50);
	host_testing_region(4, CHIP, 0);
	host_testing_row(4, 0, 100, 1000, now());
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	give(FILE_NAME, 65534, 0644);
	assert_claimed(100, 65534);
}

/* In its own namespace it has another pid, and writes that one. */
UNIT(a_containers_process_does_not_stand_for_the_pid_it_has_outside)
{
	struct snapshot *snapshot;
	struct stat file;
	char path[512];

	host_testing_start();
	host_testing_region(4, CHIP, 0);
	host_testing_row(4, 0, 100, 1000, now());
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	snprintf(path, sizeof(path), "%s/%s", unit_dir(), FILE_NAME);
	assert(stat(path, &file) == 0);
	contained(100, 7);
	maps(100, &file);
	snapshot = host_testing_look();
	assert(snapshot->processes[0].stale && host_testing_total(snapshot) == 0);
	snapshot_free(snapshot);
}

UNIT(the_writers_clock_may_be_that_of_a_time_namespace)
{
	struct snapshot *snapshot;

	if (now() < 200 * NS_PER_S)
		unit_skip("the machine has only just started");
	host_testing_start();
	host_testing_process(100, "python3", 50);
	host_testing_region(4, CHIP, 0);
	host_testing_row(4, 0, 100, 1000, now() - 150 * NS_PER_S);
	host_testing_write(FILE_NAME, host_testing_bytes, NARROW);
	snapshot = host_testing_look();
	assert(snapshot->processes[0].stale && host_testing_total(snapshot) == 0);
	snapshot_free(snapshot);
	host_testing_text("proc/100/timens_offsets", "monotonic -140 0\nboottime 0 0\n");
	snapshot = host_testing_look();
	assert(snapshot->processes[0].alive && host_testing_total(snapshot) == 1000);
	assert(snapshot->time_ns - snapshot->processes[0].last_ns < 60 * NS_PER_S);
	snapshot_free(snapshot);
}

/* A process with a long list of mappings, named in a region of @user. */
static void costly(uint64_t id, uint32_t pid, uint32_t user)
{
	char path[512], name[64];
	FILE *list;

	host_testing_process(pid, "greedy", 50);
	snprintf(path, sizeof(path), "proc/%" PRIu32 "/status", pid);
	snprintf(name, sizeof(name), "Uid:\t%u\t%u\t%u\t%u\n", user, user, user, user);
	host_testing_text(path, name);
	snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/maps", unit_dir(), pid);
	list = fopen(path, "we");
	for (size_t i = 0; i < MAPS_BUDGET_ONE / 40; i++)
		fprintf(list, "00400000-00401000 rw-p 00000000 00:00 0\n");
	assert(fclose(list) == 0);
	host_testing_region(4, id, 0);
	host_testing_row(4, 0, pid, 1000, now());
	snprintf(name, sizeof(name), "shm/tt_device_%" PRIu64 "_memory", id);
	host_testing_write(name, host_testing_bytes, NARROW);
	give(name, user, 0644);
}

UNIT(mappings_of_one_user_cost_another_nothing)
{
	const unsigned int many = MAPS_BUDGET_SHARE / MAPS_BUDGET_ONE + 2;
	struct snapshot *snapshot;
	struct stat file;
	size_t alive = 0;

	if (getuid() != 0)
		unit_skip("needs to give files away");
	host_testing_start();
	for (unsigned int i = 0; i < many; i++)
		costly(1 + i, 200 + i, 1000);
	/* Shared, so that nothing but the mapping counts; its name is the last one. */
	host_testing_process(100, "python3", 50);
	foreign(CHIP, 100, &file);
	give(FILE_NAME, 65534, 0666);
	maps(100, &file);
	snapshot = host_testing_look();
	for (size_t i = 0; i < snapshot->process_count; i++)
		alive += snapshot->processes[i].alive && snapshot->processes[i].id.pid == 100;
	assert(alive == 1);
	assert(strstr(snapshot->notes[snapshot->note_count - 1], "too many mappings"));
	snapshot_free(snapshot);
}

static void junk(uint64_t id, uint32_t user)
{
	char name[64];

	snprintf(name, sizeof(name), "shm/tt_device_%" PRIu64 "_memory", id);
	host_testing_text(name, "x");
	give(name, user, 0644);
}

UNIT(files_of_one_user_hide_no_region_of_another)
{
	const unsigned int many = REGION_FILES_MAX + 5;
	struct snapshot *snapshot;
	struct stat file;

	if (getuid() != 0)
		unit_skip("needs to give files away");
	host_testing_start();
	for (unsigned int i = 0; i < many; i++)
		junk(1000 + i, 1000);
	host_testing_process(100, "python3", 50);
	foreign(CHIP, 100, &file);
	maps(100, &file);
	snapshot = host_testing_look();
	assert(host_testing_total(snapshot) == 1000);
	assert(snapshot->regions_left_out == many - REGION_OWNER_MAX);
	snapshot_free(snapshot);
}

/* Who has many users, as in a user namespace, hides no region of a card. */
UNIT(files_of_many_users_hide_no_region_of_a_card)
{
	const unsigned int many = REGION_FILES_MAX + 5;
	struct snapshot *snapshot;
	struct stat file;

	if (getuid() != 0)
		unit_skip("needs to give files away");
	host_testing_start();
	for (unsigned int i = 0; i < many; i++)
		junk(1000 + i, 100000 + i);
	host_testing_text("sys/class/tenstorrent/tenstorrent!0/tt_asic_id", "4d\n");
	host_testing_process(100, "python3", 50);
	foreign(CHIP, 100, &file);
	maps(100, &file);
	give(FILE_NAME, 4000000, 0644);
	snapshot = host_testing_look();
	assert(snapshot->card_count == 1 && snapshot->cards[0].unique_id == CHIP);
	assert(host_testing_total(snapshot) == 1000 &&
	       snapshot->regions_left_out == many - REGION_FILES_MAX + 1);
	snapshot_free(snapshot);
}

UNIT(the_number_of_regions_is_bounded)
{
	struct snapshot *snapshot;

	host_testing_start();
	for (unsigned int i = 0; i < REGION_OWNER_MAX + 5; i++) {
		char path[64];

		host_testing_region(4, i, 0);
		snprintf(path, sizeof(path), "shm/tt_device_%u_memory", i);
		host_testing_write(path, host_testing_bytes, NARROW);
	}
	snapshot = host_testing_look();
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "left out"));
	assert(snapshot->regions_left_out == 5);
	snapshot_free(snapshot);
}
