/* SPDX-License-Identifier: Apache-2.0 */

/* Files are found by their process, are readable by their user, and are so many and not more. */

#include "daemon/flight/flight-files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"

#define TEST_USER 64901u

static struct flight_files *test_new(uint64_t size_max, uint64_t keep_s)
{
	const struct flight_files_config config = {
		.state = unit_dir(), .size_max = size_max, .keep_s = keep_s};
	struct flight_files *files = NULL;

	assert(flight_files_new(&files, &config) == 0);
	return files;
}

static struct flight_files_owner test_owner(uint32_t user, uint32_t pid)
{
	return (struct flight_files_owner){.user = user,
					   .process.pid = pid,
					   .process.start_ticks = 100 + pid,
					   .namespaces = ""};
}

/* A file of @size bytes, as if it had been written so many seconds ago. */
static void test_keep(struct flight_files *files, uint32_t user, uint32_t pid, off_t size,
		      uint64_t ago_s)
{
	const struct flight_files_owner owner = test_owner(user, pid);
	uint64_t time_ns = clock_ns(CLOCK_REALTIME) - ago_s * NS_PER_S;
	struct timespec times[2] = {clock_timespec(time_ns), clock_timespec(time_ns)};
	int fd;

	assert(flight_files_make(files, &owner, &fd) == 0);
	assert(ftruncate(fd, size) == 0 && futimens(fd, times) == 0);
	assert(flight_files_keep_consume(files, &owner, FLIGHT_FILES_ENDED, fd) == 0);
}

static bool test_has(uint32_t user, uint32_t pid)
{
	const struct flight_files_owner owner = test_owner(user, pid);
	char name[FLIGHT_FILES_NAME_SIZE];

	return flight_files_find(unit_dir(), &owner, FLIGHT_FILES_ENDED, 0, name);
}

static uint32_t test_count(uint32_t user, uint32_t pids)
{
	uint32_t count = 0;

	for (uint32_t pid = 1; pid <= pids; pid++)
		count += test_has(user, pid);
	return count;
}

UNIT(a_file_is_there_when_it_is_complete)
{
	const struct flight_files_owner owner = test_owner(TEST_USER, 7);
	struct flight_files *files = test_new(1 << 20, 3600);
	char name[FLIGHT_FILES_NAME_SIZE], path[4096];
	struct stat st;
	int fd;

	assert(flight_files_make(files, &owner, &fd) == 0);
	assert(!test_has(TEST_USER, 7));
	assert(write(fd, "text", 4) == 4);
	assert(flight_files_keep_consume(files, &owner, FLIGHT_FILES_ENDED, fd) == 0);
	assert(flight_files_find(unit_dir(), &owner, FLIGHT_FILES_ENDED, 0, name));
	assert(strcmp(name, "flight/64901/7-107-ended.ttrec") == 0);
	assert(!flight_files_find(unit_dir(), &owner, FLIGHT_FILES_FAILED, 0, name));
	(void)snprintf(path, sizeof(path), "%s/flight/64901/7-107-ended.ttrec", unit_dir());
	assert(stat(path, &st) == 0 && st.st_size == 4 && (st.st_mode & 0007) == 0);
	flight_files_free(files);
}

/* Numbers of processes and ticks since the start of the machine come again. */
UNIT(a_file_from_before_the_process_is_not_its_own)
{
	const struct flight_files_owner owner = test_owner(TEST_USER, 7);
	uint64_t now = clock_ns(CLOCK_REALTIME);
	struct flight_files *files = test_new(1 << 20, 3600);
	char name[FLIGHT_FILES_NAME_SIZE];

	test_keep(files, TEST_USER, 7, 100, 60);
	assert(flight_files_find(unit_dir(), &owner, FLIGHT_FILES_ENDED, now - 100 * NS_PER_S,
				 name));
	assert(!flight_files_find(unit_dir(), &owner, FLIGHT_FILES_ENDED, now - 10 * NS_PER_S,
				  name));
	flight_files_free(files);
}

UNIT(what_is_discarded_leaves_nothing)
{
	const struct flight_files_owner owner = test_owner(TEST_USER, 7);
	struct flight_files *files = test_new(1 << 20, 3600);
	char path[4096];
	int fd;

	assert(flight_files_make(files, &owner, &fd) == 0);
	flight_files_discard_consume(files, &owner, fd);
	(void)snprintf(path, sizeof(path), "%s/flight/64901/new", unit_dir());
	assert(access(path, F_OK) < 0 && errno == ENOENT);
	flight_files_free(files);
}

UNIT(a_user_has_so_many_and_the_newest)
{
	struct flight_files *files = test_new(1 << 20, 3600);

	for (uint32_t pid = 1; pid <= FLIGHT_FILES_USER_MAX + 5; pid++)
		test_keep(files, TEST_USER, pid, 100, 1000 - pid);
	assert(test_count(TEST_USER, FLIGHT_FILES_USER_MAX + 5) == FLIGHT_FILES_USER_MAX);
	assert(!test_has(TEST_USER, 5) && test_has(TEST_USER, 6));
	flight_files_free(files);
}

UNIT(who_has_most_bytes_loses_the_oldest)
{
	struct flight_files *files = test_new(100000, 3600);

	test_keep(files, TEST_USER + 1, 1, 10000, 1000); /* the oldest of all, but not much */
	for (uint32_t pid = 1; pid <= 10; pid++)
		test_keep(files, TEST_USER, pid, 15000, 500 - pid);
	assert(test_has(TEST_USER + 1, 1));
	assert(test_count(TEST_USER, 10) == 6 && test_has(TEST_USER, 10));
	flight_files_free(files);
}

UNIT(all_users_together_have_so_many)
{
	const uint32_t users = FLIGHT_FILES_MAX / FLIGHT_FILES_USER_MAX + 1;
	struct flight_files *files = test_new(1 << 30, 3600);
	uint32_t count = 0;

	for (uint32_t user = 0; user < users; user++) {
		for (uint32_t pid = 1; pid <= FLIGHT_FILES_USER_MAX; pid++)
			test_keep(files, TEST_USER + user, pid, 10, 100);
	}
	for (uint32_t user = 0; user < users; user++)
		count += test_count(TEST_USER + user, FLIGHT_FILES_USER_MAX);
	assert(count == FLIGHT_FILES_MAX);
	flight_files_free(files);
}

UNIT(old_files_go_also_those_of_an_earlier_daemon)
{
	struct flight_files *files = test_new(1 << 20, 3600);

	test_keep(files, TEST_USER, 1, 100, 3000);
	test_keep(files, TEST_USER, 2, 100, 1000);
	assert(test_count(TEST_USER, 2) == 2);
	flight_files_free(files);
	flight_files_free(test_new(1 << 20, 2000));
	assert(!test_has(TEST_USER, 1) && test_has(TEST_USER, 2));
	flight_files_free(test_new(1 << 20, 500));
	assert(!test_has(TEST_USER, 2));
}

/* What others have put there is none of ours, and is not followed. */
UNIT(links_and_strange_names_are_left_alone)
{
	struct flight_files *files = test_new(1 << 20, 3600);
	char path[4096], target[4096];

	(void)snprintf(target, sizeof(target), "%s/precious", unit_dir());
	(void)snprintf(path, sizeof(path), "%s/flight/strange", unit_dir());
	assert(mkdir(target, 0700) == 0 && mkdir(path, 0700) == 0);
	(void)snprintf(path, sizeof(path), "%s/flight/64901", unit_dir());
	assert(symlink(target, path) == 0);
	{
		const struct flight_files_owner owner = test_owner(TEST_USER, 7);
		int fd;

		assert(flight_files_make(files, &owner, &fd) < 0);
	}
	flight_files_expire(files);
	assert(access(target, F_OK) == 0);
	flight_files_free(files);
}
