/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The command that runs for each incident (--on-incident): "/bin/sh -c COMMAND" with the incident
 * as JSON on its standard input. The text is in a sealed memory file, so nothing needs to be
 * written while the command runs, and a command that does not read it blocks nobody.
 *
 * A program that leaks in a loop must not cause a storm of commands: only a few run at once, and
 * only a few are started per minute, for one user and for all; of those that wait, the first of the
 * user with the fewest running ones is next. The rest is suppressed, and the next command gets the number
 * of suppressed incidents as the member "suppressed" of its JSON.
 *
 * Its environment is PATH and TTMEM_INCIDENT_KIND, its working directory is /, its standard error
 * is the daemon's. It may run for a minute. Must be used from the loop's thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/quota.h"

struct incident_hook;
struct loop;

#define INCIDENT_HOOK_INPUT_MAX (UINT32_C(1) << 20)
#define INCIDENT_HOOK_SECONDS 60u /* then it is killed with its process group */

/* 0 or a negative errno. */
int incident_hook_new(struct incident_hook **ret_hook, struct loop *loop, const char *command);

/* Running commands continue; waiting incidents are dropped. */
struct incident_hook *incident_hook_free(struct incident_hook *incident_hook);

/*
 * Reports an incident of user @uid. @json is one object of at most INCIDENT_HOOK_INPUT_MAX bytes. 0: the command
 * runs or will run; -EAGAIN: suppressed and counted, because there are too many; -EINVAL or
 * -EMSGSIZE: invalid @json; or another negative errno: the command could not be started (later ones
 * are still tried).
 */
int incident_hook_raise(struct incident_hook *incident_hook, uint32_t uid, const char *kind,
			const char *json, size_t length);

struct incident_hook_counts {
	uint64_t started;
	uint64_t failed; /* could not be started, or exited with a code other than 0 */
	uint32_t running;
	uint32_t waiting;
};

void incident_hook_counts(const struct incident_hook *incident_hook,
			  struct incident_hook_counts *ret_counts);

/* For tests: how long a command may run, and what counts as a minute. */
void incident_hook_set_times(struct incident_hook *incident_hook, uint64_t run_ns,
			     uint64_t minute_ns);
