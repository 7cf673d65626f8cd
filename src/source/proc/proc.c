/* SPDX-License-Identifier: Apache-2.0 */

/* Reads /proc; the parsers of its files are in proc-parse.c. */

#include "source/proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/small-file.h"
#include "base/process/memory-cgroup.h"
#include "base/process/time-offsets.h"
#include "base/text.h"

#define PROC_PATH 48
#define PROC_FILE 8192 /* longer than any stat, status or cgroup file worth reading */

int proc_open(struct proc *proc)
{
	const char *path = secure_getenv("TTMEM_PROC_ROOT");
	int fd;

	if (!path || !*path)
		path = "/proc";
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*proc = (struct proc){.root = fd, .is_real = strcmp(path, "/proc") == 0};
	return 0;
}

void proc_close(struct proc *proc)
{
	if (proc->root >= 0)
		close(proc->root);
	proc->root = -1;
}

DIR *proc_list(const struct proc *proc, const char *path)
{
	return small_file_list(proc->root, path);
}

uint32_t proc_next(DIR *listing)
{
	const struct dirent *entry;
	uint64_t pid;

	while ((entry = readdir(listing))) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    text_parse_u64(entry->d_name, &pid) == 0 && pid <= INT32_MAX)
			return (uint32_t)pid;
	}
	return 0;
}

static int proc_file(const struct proc *proc, uint32_t pid, const char *name, char *ret_text,
		     size_t size)
{
	char path[PROC_PATH];
	ssize_t n;

	snprintf(path, sizeof(path), "%" PRIu32 "/%s", pid, name);
	n = small_file_read(proc->root, path, ret_text, size);
	return n < 0 ? (int)n : 0;
}

/* From the target of the link ns/pid, "pid:[4026531836]". */
static uint64_t proc_pid_namespace(const struct proc *proc, uint32_t pid)
{
	char path[PROC_PATH], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%" PRIu32 "/ns/pid", pid);
	n = readlinkat(proc->root, path, target, sizeof(target) - 1);
	if (n < 5)
		return 0;
	target[n] = '\0';
	return strtoull(target + 5, NULL, 10);
}

static pthread_once_t proc_offsets_once = PTHREAD_ONCE_INIT;
static struct time_offsets proc_own_offsets;

static void proc_read_offsets(void)
{
	time_offsets_own(&proc_own_offsets);
}

const struct time_offsets *proc_time_offsets(void)
{
	(void)pthread_once(&proc_offsets_once, proc_read_offsets); /* cannot fail on Linux */
	return &proc_own_offsets;
}

uint64_t proc_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC) - (uint64_t)proc_time_offsets()->monotonic_ns;
}

int proc_read(const struct proc *proc, uint32_t pid, struct proc_facts *ret_facts)
{
	struct proc_facts facts = {.id.pid = pid, .ns_pid = pid};
	char text[PROC_FILE];
	int r;

	r = proc_file(proc, pid, "stat", text, sizeof(text));
	if (r == 0)
		r = proc_parse_stat(text, &facts);
	if (r == 0)
		r = proc_file(proc, pid, "status", text, sizeof(text));
	if (r == 0)
		r = proc_parse_status(text, &facts);
	if (r < 0)
		return r;
	facts.id.pid = pid;
	facts.id.start_ticks =
		time_offsets_ticks(facts.id.start_ticks, proc_time_offsets()->boottime_ns);
	facts.pid_namespace = proc_pid_namespace(proc, pid);
	*ret_facts = facts;
	return 0;
}

uint64_t proc_start_ticks(const struct proc *proc, uint32_t pid)
{
	struct proc_facts facts = {0};
	char text[PROC_FILE];

	if (proc_file(proc, pid, "stat", text, sizeof(text)) < 0 ||
	    proc_parse_stat(text, &facts) < 0)
		return 0;
	return time_offsets_ticks(facts.id.start_ticks, proc_time_offsets()->boottime_ns);
}

bool proc_is_over(const struct proc *proc, const struct proc_facts *facts)
{
	CLEANUP_CLOSE int fd = -1;
	struct pollfd wait = {.events = POLLIN};

	if (facts->state == 'X' || facts->state == 'x')
		return true;
	if (facts->state != 'Z')
		return false;
	if (!proc->is_real)
		return true;
	/*
	 * A leader that has exited while its threads go on is a zombie too; a pidfd tells the
	 * difference.
	 */
	fd = (int)syscall(SYS_pidfd_open, (pid_t)facts->id.pid, 0);
	if (fd < 0)
		return errno == ESRCH;
	wait.fd = fd;
	return poll(&wait, 1, 0) > 0;
}

bool proc_has_ended(const struct proc *proc, struct process_id id)
{
	struct proc_facts facts;
	int r = proc_read(proc, id.pid, &facts);

	if (r < 0)
		return r == -ENOENT || r == -ESRCH;
	return !process_id_equal(facts.id, id) || proc_is_over(proc, &facts);
}

int proc_pid_fd(const struct proc *proc, struct process_id id)
{
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)id.pid, 0);

	if (fd < 0)
		return -errno;
	/* Checked after the pidfd was opened: from now on the pid cannot be used again. */
	if (proc_is_there(proc, id))
		return fd;
	(void)close(fd); /* nothing was written to it */
	return -ESRCH;
}

int proc_of_pid_fd(int pid_fd, uint32_t *ret_pid)
{
	char path[64], text[1024];
	CLEANUP_FCLOSE FILE *file = NULL;
	int64_t pid;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pid_fd);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (fgets(text, sizeof(text), file)) {
		if (sscanf(text, "Pid:\t%" SCNd64, &pid) != 1)
			continue;
		if (pid <= 0 || pid > UINT32_MAX)
			return pid == 0 ? -EXDEV : -ESRCH;
		*ret_pid = (uint32_t)pid;
		return 0;
	}
	return -EBADF;
}

/* Marks the file of one mapping. Returns how many were found. */
static size_t proc_mark_mapped(struct proc_mappings *search, const char *line)
{
	unsigned int dev_major, dev_minor;
	uint64_t inode;

	if (sscanf(line, "%*s %*s %*s %x:%x %" SCNu64, &dev_major, &dev_minor, &inode) != 3 ||
	    inode == 0)
		return 0;
	for (size_t i = 0; i < search->count; i++) {
		const struct proc_file *file = &search->files[i];

		if (file->inode == inode && file->device == makedev(dev_major, dev_minor) &&
		    !search->mapped[i]) {
			search->mapped[i] = true;
			return 1;
		}
	}
	return 0;
}

int proc_find_mapped(const struct proc *proc, uint32_t pid, struct proc_mappings *search)
{
	CLEANUP_FCLOSE FILE *maps = NULL;
	CLEANUP_FREE char *line = NULL;
	size_t size = 0, found = 0;
	char path[PROC_PATH];
	ssize_t length;

	search->bytes = 0;
	memset(search->mapped, 0, sizeof(search->mapped));
	snprintf(path, sizeof(path), "%" PRIu32 "/maps", pid);
	maps = small_file_stream(proc->root, path);
	if (!maps)
		return -errno;
	while (found < search->count && (length = getline(&line, &size, maps)) > 0) {
		search->bytes += (size_t)length;
		if (search->bytes > search->bytes_max)
			return -EFBIG;
		found += proc_mark_mapped(search, line);
	}
	if (ferror(maps))
		return -EIO;
	/* No mapping at all: it is exiting, or its leader has exited before the other threads. */
	return search->bytes == 0 && search->count > 0 ? -ESRCH : 0;
}

int proc_has_mapped(const struct proc *proc, uint32_t pid, const struct proc_file *file,
		    size_t bytes_max, size_t *ret_bytes)
{
	struct proc_mappings search = {.files = file, .count = 1, .bytes_max = bytes_max};
	int r = proc_find_mapped(proc, pid, &search);

	if (ret_bytes)
		*ret_bytes = search.bytes;
	return r < 0 ? r : search.mapped[0];
}

void proc_container(const struct proc *proc, uint32_t pid, char ret_id[PROC_CONTAINER_SIZE])
{
	char text[PROC_FILE];

	ret_id[0] = '\0';
	if (proc_file(proc, pid, "cgroup", text, sizeof(text)) == 0)
		proc_parse_cgroup(text, ret_id);
}

char *proc_memory_path(const struct proc *proc, uint32_t pid, bool *ret_is_v1)
{
	char text[PROC_FILE];
	const char *path = NULL;

	if (proc_file(proc, pid, "cgroup", text, sizeof(text)) == 0)
		path = memory_cgroup_path(text, ret_is_v1);
	return path ? strdup(path) : NULL;
}

uint64_t proc_start_ns(uint64_t start_ticks, uint64_t boottime_now, uint64_t realtime_now)
{
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t tick = NS_PER_S / (uint64_t)(hz > 0 ? hz : 100);
	uint64_t boot = realtime_now > boottime_now ? realtime_now - boottime_now : 0;
	uint64_t age;

	/* Rounded to the tick, so that two calls give the same result. */
	boot -= boot % tick;
	if (__builtin_mul_overflow(start_ticks, tick, &age) || age > boottime_now)
		return realtime_now;
	return boot + age;
}

uint64_t proc_started_ns(uint64_t start_ticks)
{
	return proc_start_ns(start_ticks,
			     clock_ns(CLOCK_BOOTTIME) - (uint64_t)proc_time_offsets()->boottime_ns,
			     clock_ns(CLOCK_REALTIME));
}

bool proc_offsets_of(const struct proc *proc, uint32_t pid, struct time_offsets *ret_offsets)
{
	char path[PROC_PATH];

	snprintf(path, sizeof(path), "%" PRIu32 "/timens_offsets", pid);
	return time_offsets_read(proc->root, path, ret_offsets) == 0;
}

/*
 * Looking up a name reads the list of users, from a file or over a network: so names are cached for
 * a while.
 */
#define PROC_NAMES 64u
#define PROC_NAME_NS UINT64_C(60000000000)

static pthread_mutex_t proc_names_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint32_t uid;
	uint64_t until_ns; /* 0 = empty */
	char name[64];
} proc_names[PROC_NAMES];

static bool proc_recall_name(uint32_t uid, uint64_t now, char *ret_name, size_t size)
{
	bool known;

	pthread_mutex_lock(&proc_names_lock);
	known = proc_names[uid % PROC_NAMES].uid == uid &&
		now < proc_names[uid % PROC_NAMES].until_ns;
	if (known)
		snprintf(ret_name, size, "%s", proc_names[uid % PROC_NAMES].name);
	pthread_mutex_unlock(&proc_names_lock);
	return known;
}

static void proc_remember_name(uint32_t uid, uint64_t now, const char *name)
{
	pthread_mutex_lock(&proc_names_lock);
	proc_names[uid % PROC_NAMES].uid = uid;
	proc_names[uid % PROC_NAMES].until_ns = now + PROC_NAME_NS;
	snprintf(proc_names[uid % PROC_NAMES].name, sizeof(proc_names[0].name), "%s", name);
	pthread_mutex_unlock(&proc_names_lock);
}

void proc_user_name(uint32_t uid, char *ret_name, size_t size)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct passwd entry, *found = NULL;
	char text[4096];

	if (proc_recall_name(uid, now, ret_name, size))
		return;
	if (getpwuid_r(uid, &entry, text, sizeof(text), &found) == 0 && found)
		snprintf(ret_name, size, "%s", found->pw_name);
	else
		snprintf(ret_name, size, "%" PRIu32, uid);
	proc_remember_name(uid, now, ret_name);
}
