/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The command that is run for each incident (--on-incident): "/bin/sh -c COMMAND" with the incident as
 * JSON on its input. The text lies in a sealed memory file, so there is nothing to be written while the
 * command runs, and a command that does not read it holds up nobody.
 *
 * A program that leaks in a loop must not become a storm of commands: only some run at once and only
 * some are started per minute. The rest is left out, and the next one is told how many were, as the
 * member "suppressed" of its JSON.
 *
 * Its environment is PATH and TTMEM_INCIDENT_KIND; its folder is /; its standard error is the daemon's. It
 * has a minute. Lives in the loop's thread.
 */

#include <stddef.h>
#include <stdint.h>

struct incident_hook;
struct loop;

#define INCIDENT_HOOK_RUNNING_MAX \
	4u /* a command may well take seconds: to send a mail, to write a file */
#define INCIDENT_HOOK_PER_MINUTE 10u /* a person reads no more */
#define INCIDENT_HOOK_INPUT_MAX (UINT32_C(1) << 20)
#define INCIDENT_HOOK_SECONDS 60u /* then it is killed, with its process group */

/* 0 or a negative errno. */
int incident_hook_new(struct incident_hook **ret_alarm, struct loop *loop, const char *command);

/* What runs goes on without us; what waits is dropped. */
struct incident_hook *incident_hook_free(struct incident_hook *incident_hook);

/*
 * Something has happened. @json is one object, of at most INCIDENT_HOOK_INPUT_MAX bytes. 0: the command runs or
 * will; -EAGAIN: left out because there are too many, which is counted; -EINVAL or -EMSGSIZE: wrong
 * @json; or another negative errno: it could not be started (later ones are tried all the same).
 */
int incident_hook_raise(struct incident_hook *incident_hook, const char *kind, const char *json,
			size_t length);

struct incident_hook_counts {
	uint64_t started;
	uint64_t failed;     /* could not be started, or ended with another code than 0 */
	uint64_t killed;     /* of them: ran for too long */
	uint64_t suppressed; /* left out */
	uint32_t running;
	uint32_t waiting;
};

void incident_hook_counts(const struct incident_hook *incident_hook,
			  struct incident_hook_counts *ret_counts);

/* For tests: how long a command may run, and what counts as a minute. */
void incident_hook_set_times(struct incident_hook *incident_hook, uint64_t run_ns,
			     uint64_t minute_ns);
