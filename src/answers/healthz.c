/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.health/1. */

#include "answers/healthz.h"

#include "answers/document.h"
#include "answers/fields.h"
#include "answers/session.h"
#include "base/bits.h"
#include "model/health.h"

#define ROW struct health

static const struct field healthz_store[] = {
	FIELD("runs", BOOL, store_runs, .says = "the past can be written at present"),
	FIELD("queued", NUMBER, store_queued),
	FIELD("written", NUMBER, store_written),
	FIELD("dropped", NUMBER, store_dropped),
	FIELD("bytes", BYTES, store_bytes),
	FIELD_END,
};

const char *healthz_details(uint32_t who)
{
	static const char *const names[] = {"open", "token", "none"};

	return who < ARRAY_SIZE(names) ? names[who] : NULL;
}

#undef ROW
#define ROW struct healthz_row
#define HEALTH(...) FIELD_VIA(health, struct health, __VA_ARGS__)

static const struct field healthz_members[] = {
	FIELD("status", TEXT, status, .names = health_status,
	      .says = "degraded: it tracks, but something does not work"),
	FIELD("details", TEXT, details, .names = healthz_details,
	      .says = "to whom buffers, names and incidents are given: everybody, who has the "
		      "token, nobody"),
	FIELD("fleet", BOOL, has_fleet, .says = "other machines are configured: /api/v1/fleet"),
	FIELD_POINTED(
		"session", session, session_fields,
		.says = "the browser that asks is signed in, see /api/v1/sign-in; null: it is "
			"not"),
	FIELD_POINTED("recording", recording, document_recording_fields,
		      .says = "what is shown instead of a machine (ttmem report --serve); null: "
			      "nothing, or the browser is not signed in"),
	HEALTH("start_ns", TIME, start_ns),
	HEALTH("books", NUMBER, books, .says = "of living processes"),
	HEALTH("books_refused", NUMBER, books_refused),
	HEALTH("ended", NUMBER, ended, .says = "processes, since the daemon started"),
	HEALTH("leaked", NUMBER, leaked, .says = "of them, those that left buffers behind"),
	HEALTH("unobserved_exits", NUMBER, unobserved_exits),
	FIELD_WITHIN("store", health, healthz_store),
	FIELD_END,
};

const struct document healthz_document = {
	.schema = "ttmem.health/1",
	.title = "/healthz: whether the daemon can do all it should",
	.members = healthz_members,
};
