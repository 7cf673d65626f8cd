/* SPDX-License-Identifier: Apache-2.0 */

/* Asks the daemon for processes that have ended, and reports those that nobody has seen. */

#include "cli/watch/watch-unseen.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "answers/ended.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/common/daemon-pages.h"
#include "model/filter.h"

#define UNSEEN_EVERY_NS NS_PER_S
#define UNSEEN_LATE_NS (10 * NS_PER_S)  /* so much later an end may be in the list */
#define UNSEEN_PAUSE_NS (60 * NS_PER_S) /* after no answer */
#define UNSEEN_ROWS 1000u               /* of one question */

struct unseen_context {
	struct watch_unseen *unseen;
	const struct filter *filter;
};

void watch_unseen_add(struct watch_unseen *unseen, uint32_t pid)
{
	unseen->pids[unseen->count++ % WATCH_UNSEEN_PIDS] = pid;
}

static bool unseen_knows(const struct watch_unseen *unseen, uint32_t pid)
{
	uint64_t n = bits_min(unseen->count, (uint64_t)WATCH_UNSEEN_PIDS);

	for (uint64_t i = 0; i < n; i++) {
		if (unseen->pids[i] == pid)
			return true;
	}
	return false;
}

void watch_unseen_put(FILE *out, uint32_t pid, const char *comm)
{
	fprintf(out, "note: pid %" PRIu32 " (", pid);
	text_put(out, comm);
	(void)fputs(") ended before it could be followed\n", out);
}

static int unseen_row(void *context, const void *row)
{
	const struct unseen_context *asked = context;
	const struct ended_row *ended = row;

	/* Others keep no book, so their events are never shown. */
	if (!ended->source || strcmp(ended->source, "book") != 0 ||
	    !filter_wants_pid(asked->filter, ended->pid) ||
	    ended->ended_ns < asked->unseen->since_ns || unseen_knows(asked->unseen, ended->pid))
		return 0;
	watch_unseen_add(asked->unseen, ended->pid);
	watch_unseen_put(stderr, ended->pid, ended->comm ? ended->comm : "?");
	return 0;
}

void watch_unseen_tell(struct watch_unseen *unseen, struct daemon_client *remote,
		       const struct filter *filter)
{
	struct unseen_context context = {.unseen = unseen, .filter = filter};
	uint64_t real = clock_ns(CLOCK_REALTIME);
	const struct daemon_pages_query query = {
		.answer = &answers[ANSWERS_ENDED],
		.query = {.given = QUERY_SINCE | QUERY_LIMIT,
			  .since_ns = bits_max(unseen->since_ns, real - UNSEEN_LATE_NS),
			  .limit = UNSEEN_ROWS},
	};
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!remote || now < unseen->next_ns)
		return;
	unseen->next_ns = now + UNSEEN_EVERY_NS;
	if (daemon_pages_each(remote, &query, unseen_row, &context, NULL) != 0)
		unseen->next_ns = now + UNSEEN_PAUSE_NS;
}
