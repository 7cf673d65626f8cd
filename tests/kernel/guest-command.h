/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For tests of what people see: programs of the machine that are run beside a test. Helpers assert: a test
 * that cannot even begin has failed.
 */

#include <sys/types.h>

/* A living process that holds three buffers on device 30, in one of the ways of holder.c. */
struct command_holder {
	pid_t pid;
	int input;
};

#define COMMAND_DEVICE 30u

/* With the library and nothing set: the module is all it takes. */
void command_hold(struct command_holder *ret_holder, const char *how, const char *sizes[3],
		  uid_t user);
void command_release(struct command_holder *holder);

/* What a shell command prints; valid until the next call. @ret_status as of waitpid(), may be NULL. */
const char *command_output(const char *line, int *ret_status);
