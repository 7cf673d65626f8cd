/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starts commands, few at a time. An accepted incident that cannot run yet waits as its memory
 * file; the limit per minute counts accepted incidents, which also bounds how many can wait.
 */

#include "daemon/notify/incident-hook.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/small-file.h"
#include "base/process/child.h"
#include "base/quota.h"
#include "base/threads/loop.h"

#define INCIDENT_HOOK_KIND_SIZE 64

/* One accepted incident. */
struct incident_hook_call {
	int input; /* the memory file; owned until the command is started */
	uint32_t uid;
	char kind[INCIDENT_HOOK_KIND_SIZE];
};

/* A slot for a running command. */
struct incident_hook_run {
	struct incident_hook *incident_hook;
	struct child child;
	struct loop_timer limit;
	uint32_t uid;
};

struct incident_hook {
	struct loop *loop;
	char *command;
	uint64_t run_ns, minute_ns;

	uint64_t let_in_ns[INCIDENT_HOOK_PER_MINUTE];  /* ring of the latest times of acceptance */
	uint32_t let_in_uid[INCIDENT_HOOK_PER_MINUTE]; /* and whose they were */
	uint64_t let_in;                               /* total accepted */
	uint64_t untold;                               /* suppressed since the last accepted one */

	struct incident_hook_call waiting[INCIDENT_HOOK_PER_MINUTE]; /* oldest first */
	uint32_t waiting_count;
	struct incident_hook_run runs[INCIDENT_HOOK_RUNNING_MAX];
	struct incident_hook_counts counts; /* running and waiting are computed on demand */
};

static void incident_hook_start_waiting(struct incident_hook *incident_hook);

static void incident_hook_ended(struct child *child, int status)
{
	struct incident_hook_run *run = container_of(child, struct incident_hook_run, child);

	loop_cancel(run->incident_hook->loop, &run->limit);
	if (status != 0)
		run->incident_hook->counts.failed++;
	incident_hook_start_waiting(run->incident_hook);
}

static void incident_hook_too_long(struct loop_timer *timer)
{
	struct incident_hook_run *run = container_of(timer, struct incident_hook_run, limit);

	quota_count(QUOTA_HOOK_KILLED, 1);
	child_kill(&run->child);
}

int incident_hook_new(struct incident_hook **ret_hook, struct loop *loop, const char *command)
{
	CLEANUP_FREE struct incident_hook *incident_hook = calloc(1, sizeof(*incident_hook));

	if (!incident_hook)
		return -ENOMEM;
	incident_hook->command = strdup(command);
	if (!incident_hook->command)
		return -ENOMEM;
	incident_hook->loop = loop;
	incident_hook->run_ns = INCIDENT_HOOK_SECONDS * NS_PER_S;
	incident_hook->minute_ns = 60 * NS_PER_S;
	for (size_t i = 0; i < INCIDENT_HOOK_RUNNING_MAX; i++) {
		incident_hook->runs[i].incident_hook = incident_hook;
		incident_hook->runs[i].child = CHILD_NULL;
		incident_hook->runs[i].child.ended = incident_hook_ended;
		incident_hook->runs[i].limit.fire = incident_hook_too_long;
	}
	*ret_hook = cleanup_steal(incident_hook);
	return 0;
}

struct incident_hook *incident_hook_free(struct incident_hook *incident_hook)
{
	if (!incident_hook)
		return NULL;
	for (size_t i = 0; i < INCIDENT_HOOK_RUNNING_MAX; i++) {
		loop_cancel(incident_hook->loop, &incident_hook->runs[i].limit);
		child_forget(&incident_hook->runs[i].child);
	}
	for (size_t i = 0; i < incident_hook->waiting_count; i++)
		(void)close(incident_hook->waiting[i].input); /* its command will not run */
	free(incident_hook->command);
	free(incident_hook);
	return NULL;
}

/* Builds the input of a command: @json with one more member, in a sealed memory file. */
static int incident_hook_input(uint64_t suppressed, const char *json, size_t length, int *ret_fd)
{
	const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
	CLEANUP_CLOSE int fd = -1;
	char start[64];
	size_t inside = 1;
	int r;

	while (inside < length - 1 && strchr(" \t\r\n", json[inside]))
		inside++;
	(void)snprintf(start, sizeof(start), "{\"suppressed\":%" PRIu64 "%s", suppressed,
		       json[inside] == '}' ? "" : ",");
	fd = memfd_create("ttmem-incident", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	r = small_file_write_fd(fd, start, strlen(start));
	if (r == 0)
		r = small_file_write_fd(fd, json + inside, length - inside);
	if (r == 0 && (fcntl(fd, F_ADD_SEALS, seals) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		r = -errno;
	if (r < 0)
		return r;
	*ret_fd = cleanup_steal_fd(&fd);
	return 0;
}

static int incident_hook_start(struct incident_hook_run *run, const struct incident_hook_call *call)
{
	struct incident_hook *incident_hook = run->incident_hook;
	char kind[sizeof("TTMEM_INCIDENT_KIND=") + INCIDENT_HOOK_KIND_SIZE];
	const char *const arguments[] = {"sh", "-c", incident_hook->command, NULL};
	const char *const environment[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", kind, NULL};
	const struct child_setup setup = {
		.program = "/bin/sh",
		.arguments = arguments,
		.environment = environment,
		.folder = "/",
		.input = call->input,
		.extra = -1,
		.keeps_errors = true,
	};
	int r;

	(void)snprintf(kind, sizeof(kind), "TTMEM_INCIDENT_KIND=%s", call->kind);
	r = loop_set(incident_hook->loop, &run->limit,
		     loop_now(incident_hook->loop) + incident_hook->run_ns);
	if (r == 0)
		r = child_start(&run->child, incident_hook->loop, &setup);
	if (r < 0) {
		loop_cancel(incident_hook->loop, &run->limit);
		incident_hook->counts.failed++;
		return r;
	}
	run->uid = call->uid;
	incident_hook->counts.started++;
	return 0;
}

static struct incident_hook_run *incident_hook_free_run(struct incident_hook *incident_hook)
{
	for (size_t i = 0; i < INCIDENT_HOOK_RUNNING_MAX; i++) {
		if (incident_hook->runs[i].child.pid == 0)
			return &incident_hook->runs[i];
	}
	return NULL;
}

static uint32_t incident_hook_running(const struct incident_hook *incident_hook, uint32_t uid)
{
	uint32_t count = 0;

	for (size_t i = 0; i < INCIDENT_HOOK_RUNNING_MAX; i++)
		count += incident_hook->runs[i].child.pid > 0 && incident_hook->runs[i].uid == uid;
	return count;
}

/* The oldest of the user with the fewest running commands. */
static uint32_t incident_hook_next(const struct incident_hook *incident_hook)
{
	uint32_t next = 0, least = UINT32_MAX;

	for (uint32_t i = 0; i < incident_hook->waiting_count; i++) {
		uint32_t running =
			incident_hook_running(incident_hook, incident_hook->waiting[i].uid);

		if (running < least) {
			least = running;
			next = i;
		}
	}
	return next;
}

static void incident_hook_start_waiting(struct incident_hook *incident_hook)
{
	struct incident_hook_run *run;

	while (incident_hook->waiting_count > 0 && (run = incident_hook_free_run(incident_hook))) {
		uint32_t next = incident_hook_next(incident_hook);
		struct incident_hook_call call = incident_hook->waiting[next];

		incident_hook->waiting_count--;
		memmove(&incident_hook->waiting[next], &incident_hook->waiting[next + 1],
			(incident_hook->waiting_count - next) * sizeof(incident_hook->waiting[0]));
		(void)incident_hook_start(run, &call); /* a failure is counted */
		(void)close(call.input);               /* the command has its own descriptor */
	}
}

/*
 * Whether one more incident of a user may be accepted now. Not a struct quota_rate: the minute is shared by
 * all users, so what one may start depends on what others have started.
 */
static bool incident_hook_has_room(const struct incident_hook *incident_hook, uint32_t uid)
{
	uint64_t now = loop_now(incident_hook->loop), used = 0, own = 0, waiting = 0;

	for (uint64_t i = 0; i < bits_min(incident_hook->let_in, INCIDENT_HOOK_PER_MINUTE); i++) {
		if (now - incident_hook->let_in_ns[i] >= incident_hook->minute_ns)
			continue;
		used++;
		own += incident_hook->let_in_uid[i] == uid;
	}
	/* Incidents accepted over a minute ago may still wait behind slow commands. */
	for (uint32_t i = 0; i < incident_hook->waiting_count; i++)
		waiting += incident_hook->waiting[i].uid == uid;
	return quota_rest(INCIDENT_HOOK_PER_MINUTE, used, own) > 0 &&
	       quota_rest(INCIDENT_HOOK_PER_MINUTE, incident_hook->waiting_count, waiting) > 0;
}

int incident_hook_raise(struct incident_hook *incident_hook, uint32_t uid, const char *kind,
			const char *json, size_t length)
{
	struct incident_hook_call call = {.input = -1, .uid = uid};
	struct incident_hook_run *run;
	size_t at;
	int r;

	if (length > INCIDENT_HOOK_INPUT_MAX)
		return -EMSGSIZE;
	if (length < 2 || json[0] != '{' || memchr(json, '\0', length))
		return -EINVAL;
	if (!incident_hook_has_room(incident_hook, uid)) {
		quota_count(QUOTA_HOOK_SUPPRESSED, 1);
		incident_hook->untold++;
		return -EAGAIN;
	}
	(void)snprintf(call.kind, sizeof(call.kind), "%s", kind); /* our own kinds always fit */
	r = incident_hook_input(incident_hook->untold, json, length, &call.input);
	if (r < 0) {
		incident_hook->counts.failed++;
		return r;
	}
	at = (size_t)(incident_hook->let_in++ % INCIDENT_HOOK_PER_MINUTE);
	incident_hook->let_in_ns[at] = loop_now(incident_hook->loop);
	incident_hook->let_in_uid[at] = uid;
	incident_hook->untold = 0;
	run = incident_hook_free_run(incident_hook);
	if (!run) {
		incident_hook->waiting[incident_hook->waiting_count++] = call;
		return 0;
	}
	r = incident_hook_start(run, &call);
	(void)close(call.input); /* the command has its own descriptor */
	return r;
}

void incident_hook_counts(const struct incident_hook *incident_hook,
			  struct incident_hook_counts *ret_counts)
{
	*ret_counts = incident_hook->counts;
	ret_counts->waiting = incident_hook->waiting_count;
	ret_counts->running = 0;
	for (size_t i = 0; i < INCIDENT_HOOK_RUNNING_MAX; i++)
		ret_counts->running += incident_hook->runs[i].child.pid > 0;
}

void incident_hook_set_times(struct incident_hook *incident_hook, uint64_t run_ns,
			     uint64_t minute_ns)
{
	incident_hook->run_ns = run_ns;
	incident_hook->minute_ns = minute_ns;
}
