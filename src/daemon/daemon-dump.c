/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The legacy report of remaining buffers, as requested over HTTP: what living processes hold, as
 * the old server printed it on its own output, and below it what exited ones have left, which it
 * did not keep.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "answers/remaining-report.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "daemon/daemon.h"
#include "daemon/registry/access.h"
#include "daemon/registry/collector.h"
#include "daemon/symbols/symbols-namer.h"
#include "model/query.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "store/store.h"

#define DUMP_LEAKS_MAX 1000u
#define DUMP_BUFFERS_MAX 1000u /* of each */
#define DUMP_LINES_MAX 100000u /* of all together */

struct dump_leaks {
	FILE *out;
	uint64_t ended_ns; /* of the process whose buffers follow */
	uint64_t lines;    /* buffers so far */
	uint64_t count;
};

static int dump_living(struct daemon *daemon, const struct access_peer *asker, FILE *out)
{
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer;
	const struct snapshot_request everything = {.buffers = true, .namer = &namer.namer};
	const struct collector_wish wish = {.request = &everything, .asker = asker};
	struct snapshot *snapshot;
	/* The history is everybody's, so only for those who may see everybody. */
	int r = !asker || asker->sees_all ? daemon_report(daemon, out) : -ENOENT;

	if (r == 0)
		return 0;
	symbols_namer_init(&namer, daemon->symbols, false); /* only names that are known already */
	r = collector_read(daemon->collector, &wish, &snapshot);
	if (r < 0)
		return r;
	r = remaining_report_buffers(out, snapshot, NULL);
	snapshot_free(snapshot);
	return r;
}

static int dump_leak(void *context, const struct store_leak *leak)
{
	struct dump_leaks *dump = context;

	if (dump->lines >= DUMP_LINES_MAX)
		return 1;
	if (dump->count++ == 0)
		fputs("\nLeft by ended processes:\n", dump->out);
	dump->ended_ns = leak->ending.ended_ns;
	fprintf(dump->out,
		"⚠️  Process %" PRIu32 " exited but left %" PRIu64 " buffers allocated:\n",
		leak->process.id.pid, leak->buffers);
	if (bits_min(leak->listed, DUMP_BUFFERS_MAX) < leak->buffers)
		fprintf(dump->out, "    (%" PRIu64 " of them are listed)\n",
			bits_min(leak->listed, DUMP_BUFFERS_MAX));
	return 0;
}

static int dump_leaked_buffer(void *context, const struct snapshot_buffer *buffer,
			      uint64_t device_uid)
{
	struct dump_leaks *dump = context;
	uint64_t age = dump->ended_ns > buffer->born_ns ? dump->ended_ns - buffer->born_ns : 0;

	dump->lines++;
	(void)device_uid; /* the old report identifies devices by their numbers */
	fprintf(dump->out,
		"    [Device %" PRIu32 "] Buffer 0x%" PRIx64 ": %" PRIu64 " bytes %s (age: %" PRIu64
		"s)",
		buffer->device, buffer->address, buffer->size, types_name(buffer->type),
		age / NS_PER_S);
	if (buffer->name) {
		fputs(" 📝 ", dump->out);
		text_put(dump->out, buffer->name);
	}
	fputc('\n', dump->out);
	return 0;
}

static int dump_ended(struct daemon *daemon, const struct access_peer *asker, uint64_t since_ns,
		      FILE *out)
{
	struct dump_leaks dump = {.out = out};
	const struct store_leak_rows rows = {
		.context = &dump,
		.leak = dump_leak,
		.buffer = dump_leaked_buffer,
		.buffers_max = DUMP_BUFFERS_MAX,
	};
	const struct store_filter filter = {
		.sees = {.context = asker, .may_see = asker->sees_all ? NULL : daemon_may_see},
		.since_ns = since_ns,
		.limit = DUMP_LEAKS_MAX,
	};
	struct store_cursor next;
	struct store_reader *reader;
	int r;

	if (!daemon->store)
		return 0;
	(void)store_flush(daemon->store, 1000); /* what is not written in time is not shown */
	r = store_reader_open(daemon->store, &reader);
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	r = store_query_leaks(reader, &filter, &rows, &next);
	store_reader_close(reader);
	if (r == 0 && next.more)
		fputs("    ... and older ones: see \"ttmem leaks\"\n", out);
	return r;
}

int daemon_dump(void *context, const struct query_asker *asker, uint64_t since_ns, FILE *out)
{
	int r = dump_living(context, asker->peer, out);

	return r < 0 || since_ns == UINT64_MAX ? r
					       : dump_ended(context, asker->peer, since_ns, out);
}
