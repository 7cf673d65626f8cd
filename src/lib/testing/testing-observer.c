/* SPDX-License-Identifier: Apache-2.0 */

/* Finds and reads books for tests. */

#include "lib/testing/testing-observer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"

#define OBSERVER_BOOKS 64
#define OBSERVER_TIMES_SLOWER 40 /* for an emulated processor */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* NOLINTBEGIN(concurrency-mt-unsafe): tests set up before they have threads, and print at their end */

void observer_track(void)
{
	assert(setenv("TTMEM", "1", 1) == 0);
	assert(setenv("TTMEM_SOCKET", "none", 1) == 0);
	unit_expect_fds(1);
}

void observer_track_without_stacks(void)
{
	observer_track();
	assert(setenv("TTMEM_STACKS", "off", 1) == 0);
}

void observer_untrack(void)
{
	assert(setenv("TTMEM", "0", 1) == 0);
}

bool observer_has_kernel(void)
{
	return access("/dev/ttmem", R_OK | W_OK) == 0;
}

bool observer_is_book(const char *link)
{
	return strncmp(link, "/memfd:ttmem-book", 17) == 0 || strncmp(link, "/ttmem-book", 11) == 0;
}

void observer_open_fd(struct observer *ret_observer, int fd)
{
	*ret_observer = (struct observer){.fd = -1};
	assert(file_fd_init(&ret_observer->file, fd) == 0);
	assert(reader_init(&ret_observer->reader, &ret_observer->file.file) == 0);
}

void observer_close(struct observer *observer)
{
	reader_deinit(&observer->reader);
	view_deinit(&observer->view);
	if (observer->fd >= 0)
		close(observer->fd);
	*observer = (struct observer){.fd = -1};
}

/* Opens descriptor @name of @pid if it is that process's book. */
static int observer_try(pid_t pid, const char *name)
{
	char path[64], target[64] = "";
	struct book_header header;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", (int)pid, name);
	if (readlink(path, target, sizeof(target) - 1) < 0 || !observer_is_book(target))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (pread(fd, &header, sizeof(header), 0) == sizeof(header) && header.magic == BOOK_MAGIC &&
	    header.pid == (uint32_t)pid)
		return fd;
	close(fd);
	return -1;
}

/* Return: how many there are; opens the first one. */
static uint32_t observer_find(pid_t pid, int *ret_fd)
{
	ino_t seen[OBSERVER_BOOKS];
	uint32_t count = 0;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	*ret_fd = -1;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		int fd = observer_try(pid, entry->d_name);
		bool known = false;
		struct stat st;

		if (fd < 0)
			continue;
		assert(fstat(fd, &st) == 0 && count < OBSERVER_BOOKS);
		for (uint32_t i = 0; i < count; i++)
			known = known || seen[i] == st.st_ino;
		if (!known)
			seen[count++] = st.st_ino;
		if (!known && count == 1)
			*ret_fd = fd;
		else
			close(fd);
	}
	closedir(dir);
	return count;
}

uint32_t observer_count(pid_t pid)
{
	uint32_t count;
	int fd;

	count = observer_find(pid, &fd);
	if (fd >= 0)
		close(fd);
	return count;
}

bool observer_open(struct observer *ret_observer, pid_t pid)
{
	int fd;

	if (observer_find(pid, &fd) == 0)
		return false;
	observer_open_fd(ret_observer, fd);
	ret_observer->fd = fd;
	return true;
}

bool observer_look(struct observer *observer, uint32_t device, enum view_owner owner)
{
	int r = view_read(&observer->view, &observer->reader, device, owner);

	if (r == -ENOENT)
		return false;
	if (r < 0)
		printf("device %u cannot be read: %s\n", device, strerror(-r));
	assert(r == 0);
	assert(observer->view.rows_exact);
	assert(observer->view.bad_rows == 0);
	return true;
}

/* NOLINTEND(concurrency-mt-unsafe) */

struct book_hot observer_hot(struct observer *observer, uint32_t device, uint32_t type)
{
	if (!observer_look(observer, device, VIEW_LIVING))
		return (struct book_hot){0};
	return observer->view.hot[type];
}

struct book_cold observer_cold(struct observer *observer, uint32_t device, uint32_t type)
{
	if (!observer_look(observer, device, VIEW_LIVING))
		return (struct book_cold){0};
	return observer->view.cold[type];
}

uint64_t observer_inexact(struct observer *observer, uint32_t device)
{
	return observer_look(observer, device, VIEW_LIVING) ? observer->view.inexact : 0;
}

const struct book_record *observer_row(const struct observer *observer, uint32_t type,
				       uint64_t address)
{
	struct view_iterator it = {0};

	while (view_next(&observer->view, &it)) {
		if (it.record->address == address && book_meta_type(it.record->meta) == type)
			return it.record;
	}
	return NULL;
}

const char *observer_text(struct observer *observer, uint32_t id)
{
	static char text[BOOK_PATH_MAX + 1];
	size_t length = 0;
	const char *bytes = reader_string(&observer->reader, id, &length);

	assert(length < sizeof(text));
	if (bytes)
		memcpy(text, bytes, length);
	text[bytes ? length : 0] = '\0';
	return text;
}

const struct book_header *observer_header(struct observer *observer)
{
	assert(reader_refresh(&observer->reader) == 0);
	return &observer->reader.header;
}

void observer_wait(pid_t child)
{
	int status;

	assert(child > 0);
	assert(waitpid(child, &status, 0) == child);
	if (status != 0)
		printf("child %d: status %#x\n", (int)child, (unsigned int)status);
	assert(status == 0);
}

double observer_now(void)
{
	return (double)clock_ns(CLOCK_MONOTONIC) / 1e9;
}

void observer_handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	sigemptyset(&action.sa_mask);
	assert(sigaction(number, &action, NULL) == 0);
}

timer_t observer_timer(int number, long nanoseconds)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number};
	struct itimerspec spec = {0};
	timer_t timer;

	/* Under emulation the handlers would take all the time. */
	if (secure_getenv("TTMEM_TEST_QUICK"))
		nanoseconds *= OBSERVER_TIMES_SLOWER;
	spec.it_interval.tv_nsec = spec.it_value.tv_nsec = nanoseconds;
	event.sigev_notify_thread_id = gettid();
	assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	assert(timer_settime(timer, 0, &spec, NULL) == 0);
	return timer;
}
