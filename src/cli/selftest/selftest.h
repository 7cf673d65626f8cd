/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of `ttmem selftest`: the known buffers, and the checks of the tools. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The known buffers: those of the old debugging script (half, two and eight MiB of L1), and one of
 * each other kind. All on device 1000, which no machine has. */
#define SELFTEST_DEVICE 1000u

struct selftest_buffer {
	uint32_t type;
	uint64_t address;
	uint64_t size;
	const char *name;
};

extern const struct selftest_buffer selftest_buffers[];
extern const unsigned int selftest_count;

/* Bytes and number of the known buffers of one type. */
uint64_t selftest_bytes(uint32_t type, uint64_t *ret_buffers);

/* What a check found wrong; NULL = nothing. Valid until the next check. */
typedef const char *selftest_check(uint32_t pid);

/* Prints the result of a check. Return: whether it passed. */
bool selftest_report(const char *what, const char *wrong);

/* The JSON that "ttmem WORDS" prints, NULL if there is none. */
json_t *selftest_ask(const char *words);

/* The element of @list whose pid is @pid, or NULL. */
json_t *selftest_of_pid(json_t *list, uint32_t pid);

/*
 * Whether @document, from ps or smi, has exactly the known buffers of the process; NULL, or what is
 * wrong.
 */
const char *selftest_memory(json_t *document, uint32_t pid);

/* The second half, with a ttmemd of its own. Return: whether everything passed. */
bool selftest_with_daemon(void);

/* "ttmem selftest --play-old": a client of the old socket. */
_Noreturn void selftest_play_old(void);

/* With real tensors: NULL, or what is wrong; @ret_skip: why it was skipped. */
const char *selftest_ttnn(const char **ret_skip);

selftest_check selftest_smi, selftest_ps, selftest_list, selftest_history, selftest_incidents;
selftest_check selftest_places; /* selftest_list without names; the old socket has none */
