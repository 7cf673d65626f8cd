/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The documents of the history: leaks, incidents and series over time, as docs/schema/ describes
 * them, for HTTP. Each is one page; "next" leads to the following one.
 */

#include <stdbool.h>
#include <stdint.h>

struct emit;
struct filter;
struct store_reader;
struct web_past_query;
struct web_series_query;

#define RECORDER_PAGE_DEFAULT 100u  /* leaks or incidents, if the query does not say */
#define RECORDER_ADDRESS_PAGE 1000u /* read at once when all are looked through for an address */
#define RECORDER_ADDRESS_PAGES_MAX 1000u

/* What the client may see and wants to see. */
struct recorder_scope {
	bool has_uid; /* only what concerns this user */
	uint32_t uid;
	bool has_address; /* only what concerns this address */
	uint64_t address;
	const struct filter *filter; /* with an address: its devices and type; NULL = any */
};

/*
 * Each writes one whole document. 0; -EINVAL for a cursor that makes no sense; or another negative
 * errno: then nothing of use was written.
 */
int recorder_documents_leaks(struct store_reader *reader, const struct web_past_query *query,
			     const struct recorder_scope *scope, struct emit *json);
int recorder_documents_incidents(struct store_reader *reader, const struct web_past_query *query,
				 const struct recorder_scope *scope, struct emit *json);

/* Rows of the first two documents, each list a JSON array. */
struct recorder_rows {
	char *leaks;
	char *incidents;
};

/* All that is stored about the address of @scope; @pid: only of this process, 0 = of any. */
int recorder_documents_address(struct store_reader *reader, const struct recorder_scope *scope,
			       uint32_t pid, struct recorder_rows *ret_rows);
void recorder_documents_rows_deinit(struct recorder_rows *rows);

/* Series hold totals, which everybody may see. */
int recorder_documents_series(struct store_reader *reader, const struct web_series_query *query,
			      struct emit *json);
