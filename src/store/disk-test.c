/* SPDX-License-Identifier: Apache-2.0 */

/* Full disks and folders without access: nothing stops, and what waits is written in the end. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "store/testing/store-testing.h"

UNIT(a_folder_that_cannot_be_entered_is_reported)
{
	struct testing_world world;
	char blocked[512];
	struct store_health health;

	testing_init(&world);
	/* A file in place of the folder stops root as well. */
	snprintf(blocked, sizeof(blocked), "%s", world.folder);
	testing_write(blocked, "x", 1);
	world.config.queue_items = 32; /* a user alone gets half */
	testing_open(&world);
	for (uint32_t pid = 1; pid <= 100; pid++)
		testing_put_leak(&world, pid, "weights");
	assert(store_flush(world.store, TESTING_WAIT_MS) == -EAGAIN);
	testing_sleep(200); /* several attempts */
	health = testing_health(&world);
	assert(!health.running && health.reasons == 1 && health.written == 0);
	assert(health.queued == 16 && health.dropped_records == 84);
	assert(strstr(health.reason, "Not a directory"));
	assert(testing_count_leaks(&world) == 0);

	/* As soon as the folder can be made, what waited is written. */
	assert(unlink(blocked) == 0);
	testing_wait(&world, true);
	testing_flush(&world);
	assert(testing_count_leaks(&world) == 16);
	testing_close(&world);
}

UNIT(a_read_only_folder_is_reported)
{
	struct testing_world world;

	testing_init(&world);
	assert(mkdir(world.folder, 0500) == 0);
	if (geteuid() == 0) {
		/* Root may write anywhere: try as another user. */
		assert(chown(world.folder, 65534, 65534) == 0 && chmod(unit_dir(), 0711) == 0);
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0 ||
		    access(world.folder, X_OK) < 0)
			unit_skip("cannot become another user, or its folder is out of reach");
	}
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	assert(store_flush(world.store, TESTING_WAIT_MS) == -EAGAIN);
	assert(strstr(testing_health(&world).reason, "Permission denied"));
	assert(chmod(world.folder, 0700) == 0);
	testing_wait(&world, true);
	testing_flush(&world);
	assert(testing_count_leaks(&world) == 1);
	testing_close(&world);
}

/* A history that root left in a folder of another user. */
static void make_history_of_root(struct testing_world *world)
{
	if (geteuid() != 0)
		unit_skip("only root can become another user");
	testing_init(world);
	testing_open(world);
	testing_put_leak(world, 1, "weights");
	testing_flush(world);
	testing_close(world);
	assert(chown(world->folder, 65534, 65534) == 0 && chmod(unit_dir(), 0711) == 0);
}

static void drop_rights(const struct testing_world *world)
{
	if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0 ||
	    access(world->folder, X_OK) < 0)
		unit_skip("cannot become another user, or its folder is out of reach");
}

/* It is as good as ever: nothing is set aside, and the reason says whose it is. */
static void check_kept(struct testing_world *world, const char *reason)
{
	struct store_health health;

	testing_open(world);
	testing_put_leak(world, 2, "weights");
	assert(store_flush(world->store, TESTING_WAIT_MS) == -EAGAIN);
	health = testing_health(world);
	fprintf(stderr, "%s\n", health.reason);
	assert(!health.running && health.set_aside == 0 && health.reasons == 1);
	assert(strstr(health.reason, reason) && strstr(health.reason, "user 0"));
	assert(testing_count_aside(world) == 0);
	testing_close(world);
}

UNIT(a_database_of_another_user_is_not_called_damaged)
{
	struct testing_world world;

	make_history_of_root(&world);
	drop_rights(&world);
	check_kept(&world, "Permission denied");
}

UNIT(a_log_of_another_user_is_not_called_damaged)
{
	struct testing_world world;

	make_history_of_root(&world);
	assert(chown(testing_path(&world, STORE_FILE), 65534, 65534) == 0);
	testing_write(testing_path(&world, STORE_FILE "-wal"), "x", 1);
	assert(chmod(testing_path(&world, STORE_FILE "-wal"), 0600) == 0);
	drop_rights(&world);
	check_kept(&world, "-wal");
}

UNIT(a_database_on_a_read_only_disk_is_not_called_damaged)
{
	struct testing_world world;
	struct store_health health;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		unit_skip("only root may mount");
	testing_init(&world);
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	testing_flush(&world);
	testing_close(&world);
	if (mount(world.folder, world.folder, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, world.folder, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0)
		unit_skip("cannot mount a folder read-only here");
	testing_open(&world);
	testing_put_leak(&world, 2, "weights");
	assert(store_flush(world.store, TESTING_WAIT_MS) == -EAGAIN);
	health = testing_health(&world);
	assert(!health.running && health.set_aside == 0 && strstr(health.reason, "Read-only"));
	/* It goes on as soon as it can be written. */
	assert(mount(NULL, world.folder, NULL, MS_REMOUNT | MS_BIND, NULL) == 0);
	testing_wait(&world, true);
	testing_flush(&world);
	assert(testing_count_leaks(&world) == 2 && testing_count_aside(&world) == 0);
	testing_close(&world);
}

/* A small disk, which is unmounted when the test ends. */
static void mount_small(const char *folder, const char *size)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		unit_skip("only root may mount a small disk");
	assert(mkdir(folder, 0700) == 0);
	if (mount("tmpfs", folder, "tmpfs", 0, size) < 0)
		unit_skip("cannot mount a tmpfs here");
}

/* Takes all free space. */
static void fill_disk(const struct testing_world *world)
{
	static const char bytes[4096];
	int fd = open(testing_path(world, "somebody-elses"),
		      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert(fd >= 0);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	assert(errno == ENOSPC);
	close(fd);
}

UNIT(a_full_disk_is_reported_and_recovered_from)
{
	struct testing_world world;
	struct store_health health;
	uint32_t pid = 0;
	uint64_t before;
	char name[32];

	testing_init(&world);
	mount_small(world.folder, "size=4m");
	testing_open(&world);
	for (; pid < 100; pid++)
		testing_put_leak(&world, pid + 1, "weights");
	testing_flush(&world);

	/* Other files take the rest of the disk. Sooner or later there is no room for the log. */
	fill_disk(&world);
	for (int i = 0; testing_health(&world).running; i++) {
		assert(i < 20000);
		snprintf(name, sizeof(name), "name %d", i);
		testing_put_leak(&world, ++pid, name);
		if (i % 16 == 0)
			(void)store_flush(world.store, TESTING_WAIT_MS); /* fails in the end */
		if (i % 64 == 0)
			fill_disk(&world);
	}
	health = testing_health(&world);
	fprintf(stderr, "%s after %u\n", health.reason, pid);
	assert(health.reasons == 1 && strstr(health.reason, "full"));
	assert(health.set_aside == 0); /* the file is good, only the disk is full */
	testing_sleep(300);
	assert(testing_health(&world).reasons == 1);
	testing_put_leak(&world, ++pid, "while full");
	fill_disk(&world);
	assert(testing_count_leaks(&world) >= 100); /* existing data can be read */

	/* There is room again: neither old nor waiting data is lost. */
	assert(unlink(testing_path(&world, "somebody-elses")) == 0);
	testing_wait(&world, true);
	testing_flush(&world);
	before = testing_health(&world).dropped_records;
	assert(testing_count_leaks(&world) == pid - before);
	assert(testing_sql(&world,
			   "SELECT count(*) FROM pragma_quick_check WHERE quick_check = 'ok'") ==
	       1);
	testing_close(&world);
}

/* No room even to start. */
UNIT(a_disk_full_from_the_start_is_reported)
{
	struct testing_world world;

	testing_init(&world);
	mount_small(world.folder, "size=1m");
	fill_disk(&world);
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	assert(store_flush(world.store, TESTING_WAIT_MS) == -EAGAIN);
	testing_sleep(200);
	assert(testing_health(&world).reasons == 1 && testing_count_leaks(&world) == 0);
	assert(testing_count_aside(&world) == 0);
	assert(unlink(testing_path(&world, "somebody-elses")) == 0);
	testing_wait(&world, true);
	testing_flush(&world);
	assert(testing_count_leaks(&world) == 1);
	testing_close(&world);
}

/* A limit larger than the disk: points are deleted, and nothing has to wait. */
UNIT(a_disk_smaller_than_the_size_limit_is_used)
{
	struct testing_world world;
	struct store_health health;

	testing_init(&world);
	mount_small(world.folder, "size=4m");
	testing_open(&world);
	testing_put_leak(&world, 1, "weights");
	for (uint32_t i = 0; i < 1000; i++) {
		struct snapshot *snapshot = testing_snapshot(world.real_ns);

		for (uint32_t k = 0; k < 200; k++) {
			uint32_t process = testing_process(snapshot, 100 + k, "train");

			testing_memory(snapshot, process, 0, 0, i, 1);
		}
		assert(snapshot_finish(snapshot) == 0);
		store_put_sample(world.store, snapshot);
		snapshot_free(snapshot);
		testing_pass(&world, TESTING_S);
		if (i % 8 == 7)
			testing_flush(&world);
	}
	health = testing_health(&world);
	assert(health.running && health.reasons == 0 && health.written == 1001);
	assert(health.size_limit < UINT64_C(4) << 20 && health.size > UINT64_C(1) << 20);
	assert(testing_count_leaks(&world) == 1);
	testing_close(&world);
}

/* The same through RLIMIT_FSIZE, whose signal must not end the process. */
UNIT(a_file_size_limit_is_reported)
{
	struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
	struct testing_world world;
	char name[64];

	testing_init(&world);
	assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	testing_open(&world);
	for (uint32_t i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "a call site with a rather long name: %u", i % 5000);
		testing_put_leak(&world, i + 1, name);
		if (i % 256 == 255)
			testing_flush(&world);
	}
	testing_flush(&world);
	assert(testing_health(&world).running && testing_health(&world).written == 10000);
	assert(testing_health(&world).set_aside == 0);
	testing_close(&world);
}

/* Too small for anything: nothing can be written, and the process survives. */
UNIT(a_limit_that_nothing_fits_into)
{
	struct rlimit limit = {.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
	struct testing_world world;

	testing_init(&world);
	assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	testing_open(&world);
	for (uint32_t i = 0; i < 100; i++) {
		testing_put_leak(&world, i + 1, "weights");
		(void)store_flush(world.store, TESTING_WAIT_MS); /* fails */
	}
	assert(!testing_health(&world).running && testing_count_aside(&world) == 0);
	assert(testing_health(&world).reasons == 1);
	testing_close(&world);
}
