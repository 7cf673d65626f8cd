/* SPDX-License-Identifier: Apache-2.0 */

/* Growth in a recording: by moments from its start to the one that is shown, as "ttmem growth --from" looks. */

#include <stddef.h>

#include "answers/document.h"
#include "answers/growth.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "daemon/playback/playback.h"
#include "model/query.h"
#include "model/sites/growth.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"

#define PLAYBACK_GROWTH_SAMPLES 5u

static int playback_watch(struct playback *playback, const struct query *query,
			  struct growth *growth, struct snapshot **ret_last)
{
	const struct recording_facts *facts = recording_facts(playback->recording);
	uint64_t until = query->at_ns ? bits_min(query->at_ns, facts->end_ns) : facts->end_ns;
	uint64_t length = until - bits_min(facts->start_ns, until);
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < PLAYBACK_GROWTH_SAMPLES; i++) {
		const struct snapshot_request request = {
			.buffers = true,
			.filter = {.pid = query->filter.pid},
			.at_ns = facts->start_ns + length * i / (PLAYBACK_GROWTH_SAMPLES - 1),
		};

		*ret_last = snapshot_free(*ret_last);
		r = playback_take(playback, &request, ret_last);
		if (r == 0)
			r = growth_add(growth, *ret_last);
	}
	return r < 0 ? r : growth_recall(growth, *ret_last, NULL);
}

int playback_growth(void *context, const struct query *query, const struct query_asker *asker,
		    struct emit *json)
{
	CLEANUP(growth_deinit) struct growth growth = GROWTH_NULL;
	CLEANUP(snapshot_cleanup) struct snapshot *last = NULL;
	struct playback *playback = context;
	int r;

	growth.keeps_ended = true;
	pthread_mutex_lock(&playback->lock);
	r = playback_watch(playback, query, &growth, &last);
	pthread_mutex_unlock(&playback->lock);
	if (r < 0)
		return r;
	growth_finish(&growth, false);
	growth_put(json, last, &growth);
	return 0;
}
