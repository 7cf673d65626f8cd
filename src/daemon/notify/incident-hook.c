/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starting commands, few at a time. What has been let in but cannot run yet waits as its memory file; the
 * limit per minute counts what was let in, so that no more than that can ever wait.
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
#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/small-file.h"

#define ALARM_KIND_SIZE 64

/* One incident that was let in. */
struct alarm_call {
	int input; /* the memory file; owned until the command has it */
	char kind[ALARM_KIND_SIZE];
};

/* A place for a command that runs. */
struct alarm_run {
	struct alarm *alarm;
	struct child child;
	struct loop_timer limit;
};

struct alarm {
	struct loop *loop;
	char *command;
	uint64_t run_ns, minute_ns;

	uint64_t let_in_ns[ALARM_PER_MINUTE]; /* when the last ones were let in, a ring */
	uint64_t let_in;                      /* how many ever */
	uint64_t untold;                      /* left out since the last that was let in */

	struct alarm_call waiting[ALARM_PER_MINUTE]; /* the oldest first */
	uint32_t waiting_count;
	struct alarm_run runs[ALARM_RUNNING_MAX];
	struct alarm_counts counts; /* running and waiting are counted on demand */
};

static void alarm_start_waiting(struct alarm *alarm);

static void alarm_ended(struct child *child, int status)
{
	struct alarm_run *run = container_of(child, struct alarm_run, child);

	loop_cancel(run->alarm->loop, &run->limit);
	if (status != 0)
		run->alarm->counts.failed++;
	alarm_start_waiting(run->alarm);
}

static void alarm_too_long(struct loop_timer *timer)
{
	struct alarm_run *run = container_of(timer, struct alarm_run, limit);

	run->alarm->counts.killed++;
	child_kill(&run->child);
}

int alarm_new(struct alarm **ret_alarm, struct loop *loop, const char *command)
{
	CLEANUP_FREE struct alarm *alarm = calloc(1, sizeof(*alarm));

	if (!alarm)
		return -ENOMEM;
	alarm->command = strdup(command);
	if (!alarm->command)
		return -ENOMEM;
	alarm->loop = loop;
	alarm->run_ns = ALARM_SECONDS * NS_PER_S;
	alarm->minute_ns = 60 * NS_PER_S;
	for (size_t i = 0; i < ALARM_RUNNING_MAX; i++) {
		alarm->runs[i].alarm = alarm;
		alarm->runs[i].child = CHILD_NULL;
		alarm->runs[i].child.ended = alarm_ended;
		alarm->runs[i].limit.fire = alarm_too_long;
	}
	*ret_alarm = cleanup_steal(alarm);
	return 0;
}

struct alarm *alarm_free(struct alarm *alarm)
{
	if (!alarm)
		return NULL;
	for (size_t i = 0; i < ALARM_RUNNING_MAX; i++) {
		loop_cancel(alarm->loop, &alarm->runs[i].limit);
		child_forget(&alarm->runs[i].child);
	}
	for (size_t i = 0; i < alarm->waiting_count; i++)
		(void)close(alarm->waiting[i].input); /* nobody reads it any more */
	free(alarm->command);
	free(alarm);
	return NULL;
}

/* The input of a command: @json with one member more, in a file that nobody can change. */
static int alarm_input(uint64_t suppressed, const char *json, size_t length, int *ret_fd)
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

static int alarm_start(struct alarm_run *run, const struct alarm_call *call)
{
	struct alarm *alarm = run->alarm;
	char kind[sizeof("TTMEM_INCIDENT_KIND=") + ALARM_KIND_SIZE];
	const char *const arguments[] = {"sh", "-c", alarm->command, NULL};
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
	r = loop_set(alarm->loop, &run->limit, loop_now(alarm->loop) + alarm->run_ns);
	if (r == 0)
		r = child_start(&run->child, alarm->loop, &setup);
	if (r < 0) {
		loop_cancel(alarm->loop, &run->limit);
		alarm->counts.failed++;
		return r;
	}
	alarm->counts.started++;
	return 0;
}

static struct alarm_run *alarm_free_run(struct alarm *alarm)
{
	for (size_t i = 0; i < ALARM_RUNNING_MAX; i++) {
		if (alarm->runs[i].child.pid == 0)
			return &alarm->runs[i];
	}
	return NULL;
}

static void alarm_start_waiting(struct alarm *alarm)
{
	struct alarm_run *run;

	while (alarm->waiting_count > 0 && (run = alarm_free_run(alarm))) {
		struct alarm_call call = alarm->waiting[0];

		alarm->waiting_count--;
		memmove(&alarm->waiting[0], &alarm->waiting[1],
			alarm->waiting_count * sizeof(alarm->waiting[0]));
		(void)alarm_start(run, &call); /* counted as failed */
		(void)close(call.input);       /* the command has its own */
	}
}

/* Whether one more may be let in now. */
static bool alarm_has_room(const struct alarm *alarm)
{
	uint64_t oldest = alarm->let_in_ns[alarm->let_in % ALARM_PER_MINUTE];

	/* One that was let in a minute ago may still wait, behind commands that take their time. */
	if (alarm->waiting_count == ALARM_PER_MINUTE)
		return false;
	return alarm->let_in < ALARM_PER_MINUTE ||
	       loop_now(alarm->loop) - oldest >= alarm->minute_ns;
}

int alarm_raise(struct alarm *alarm, const char *kind, const char *json, size_t length)
{
	struct alarm_call call = {.input = -1};
	struct alarm_run *run;
	int r;

	if (length > ALARM_INPUT_MAX)
		return -EMSGSIZE;
	if (length < 2 || json[0] != '{' || memchr(json, '\0', length))
		return -EINVAL;
	if (!alarm_has_room(alarm)) {
		alarm->counts.suppressed++;
		alarm->untold++;
		return -EAGAIN;
	}
	(void)snprintf(call.kind, sizeof(call.kind), "%s", kind); /* our own short words */
	r = alarm_input(alarm->untold, json, length, &call.input);
	if (r < 0) {
		alarm->counts.failed++;
		return r;
	}
	alarm->let_in_ns[alarm->let_in++ % ALARM_PER_MINUTE] = loop_now(alarm->loop);
	alarm->untold = 0;
	run = alarm_free_run(alarm);
	if (!run) {
		alarm->waiting[alarm->waiting_count++] = call;
		return 0;
	}
	r = alarm_start(run, &call);
	(void)close(call.input); /* the command has its own */
	return r;
}

void alarm_counts(const struct alarm *alarm, struct alarm_counts *ret_counts)
{
	*ret_counts = alarm->counts;
	ret_counts->waiting = alarm->waiting_count;
	ret_counts->running = 0;
	for (size_t i = 0; i < ALARM_RUNNING_MAX; i++)
		ret_counts->running += alarm->runs[i].child.pid > 0;
}

void alarm_set_times(struct alarm *alarm, uint64_t run_ns, uint64_t minute_ns)
{
	alarm->run_ns = run_ns;
	alarm->minute_ns = minute_ns;
}
