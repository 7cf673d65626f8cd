/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The documents of the history: leaks, ended processes, incidents and series over time, as docs/schema/ describes
 * them, for HTTP. Each is one page; "next" leads to the following one.
 */

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct emit;
struct filter;
struct store_cursor;
struct store_filter;
struct store_reader;
struct query;

#define RECORDER_PAGE_DEFAULT 100u /* leaks or incidents, if the query does not say */

/* A page of leaks or incidents ends after so many bytes of rows, or so long. */
#define RECORDER_PAGE_BYTES (UINT64_C(1) << 20)
#define RECORDER_PAGE_MS 250u

#define RECORDER_ADDRESS_PAGE 1000u /* read at once when all are looked through for an address */
#define RECORDER_ADDRESS_PAGES_MAX 1000u
#define RECORDER_ADDRESS_BYTES_MAX (UINT64_C(8) << 20) /* of each list, far below an answer's */

/* Other clients' queries wait meanwhile, and the command waits 2 s for its list of processes. */
#define RECORDER_ADDRESS_MS 1500u

/* What the client may see and wants to see. */
struct recorder_scope {
	struct store_sees sees; /* whose rows */
	const char *state;      /* folder with the files of the flight recorder; NULL = none */
	bool has_address;       /* only what concerns this address */
	uint64_t address;
	const struct filter *filter; /* with an address: its devices and type; NULL = any */
	bool has_buffers_max;        /* of each leak: */
	uint32_t buffers_max;
	uint64_t bytes_max;     /* of rows: then the page, or the list, ends; 0 = any */
	bool is_page;           /* else -EFBIG, as there are no pages */
	uint64_t page_until_ms; /* CLOCK_MONOTONIC: then the page ends */
};

/*
 * Each writes one whole document. 0; -EINVAL for a cursor that makes no sense; or another negative
 * errno: then nothing of use was written.
 */
typedef int recorder_document_fn(struct store_reader *reader, const struct query *query,
				 const struct recorder_scope *scope, struct emit *json);
recorder_document_fn recorder_documents_leaks, recorder_documents_ended,
	recorder_documents_incidents;

/* Rows of one page of these documents. On failure too, those that were written are whole. */
typedef int recorder_documents_rows_fn(struct store_reader *reader,
				       const struct store_filter *filter,
				       const struct recorder_scope *scope, struct emit *json,
				       struct store_cursor *ret_next);
recorder_documents_rows_fn recorder_documents_leak_rows;
recorder_documents_rows_fn recorder_documents_incident_rows;

/* Rows of the first two documents, each list a JSON array. */
struct recorder_rows {
	char *leaks;
	char *incidents;
	bool is_cut; /* there are more, but they would be too many or take too long */
};

/*
 * What is stored about the address of @scope, newest first; @pid: only of this process, 0 = of any;
 * @until_ms: CLOCK_MONOTONIC, when to stop.
 */
int recorder_documents_address(struct store_reader *reader, const struct recorder_scope *scope,
			       uint32_t pid, uint64_t until_ms, struct recorder_rows *ret_rows);
void recorder_documents_rows_deinit(struct recorder_rows *rows);

/* Series hold totals, which everybody may see. */
int recorder_documents_series(struct store_reader *reader, const struct query *query,
			      struct emit *json);
