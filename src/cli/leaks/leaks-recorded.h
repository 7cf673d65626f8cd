/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.leaks/1 of a recording: what the processes that had ended by then left. */

#include <stdint.h>
#include <stdio.h>

struct filter;
struct session;

/* @since_ns: only of processes that ended then or later. 0 or a negative errno. */
int leaks_recorded(FILE *out, struct session *session, const struct filter *filter,
		   uint64_t since_ns);
