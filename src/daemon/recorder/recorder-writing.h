/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writing rows of the past while they come out of the database; for the files that make such
 * documents. A row of a document is begun by one callback, goes on with others and is ended by the
 * next.
 *
 * Each row's process is put into a small snapshot of its own, so that buffers and incidents of the
 * past are written by the same functions as those of the present.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/fields.h"
#include "daemon/flight/flight-files.h"
#include "daemon/recorder/recorder-cursor.h"
#include "daemon/recorder/recorder-documents.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "store/store.h"

#define RECORDER_PATH (PATH_MAX + FLIGHT_FILES_NAME_SIZE)

struct recorder_writing {
	struct emit *json;
	const struct recorder_scope *scope;
	size_t rows;                     /* so far, of either kind */
	struct fields_part row;          /* the one that goes on, if any */
	bool is_failure;                 /* it is of a failed allocation */
	bool is_of_process;              /* one pid was asked for: its times and counts */
	struct recorder_missing missing; /* so far */
	uint64_t site_buffers;           /* of the leak so far: buffers of its call sites */
	struct store_leak leak;          /* the row's; its texts are the snapshot's */
	struct snapshot *snapshot;

	/* Of a page: */
	const char *text; /* its rows */
	uint64_t hidden;
};

void recorder_writing_deinit(struct recorder_writing *writing);

/* Begins a snapshot with one process. */
int recorder_writing_process(struct recorder_writing *writing, const struct store_process *process,
			     uint64_t time_ns);
int recorder_writing_device(struct recorder_writing *writing, uint32_t device, uint64_t unique_id);

/*
 * Before each row: 0; 1: the page is full; or -EFBIG: so are the rows about an address, which have
 * no pages. A page has at least one row.
 */
int recorder_writing_check_room(struct recorder_writing *writing);

/* The file that the flight recorder has of this process: @ret_path, or NULL. */
const char *recorder_writing_recording(const struct recorder_writing *writing,
				       const struct store_process *process,
				       enum flight_files_why why, char ret_path[RECORDER_PATH]);

/* A call site. @of_leak: with what only those of leaks have. */
void recorder_writing_site(struct emit *json, const struct store_part *part, bool of_leak);

/* Whether something at an address is what was asked for. */
bool recorder_writing_is_wanted(const struct recorder_scope *scope, uint64_t address,
				uint32_t device, uint64_t unique_id, uint32_t type);

/* One page of a document: its rows first, because only then their number of bytes is known. */
struct recorder_page {
	const char *schema;
	const char *list; /* the member with the rows */
	int (*rows)(struct store_reader *reader, const struct store_filter *filter,
		    struct recorder_writing *writing, struct store_cursor *ret_next);
	/* How many there are that who asks may not see. */
	int (*hidden)(struct store_reader *reader, const struct store_sees *sees,
		      uint64_t *ret_count);
};

/* Writes the document. Return: as recorder_documents_leaks(). */
int recorder_writing_page(struct store_reader *reader, const struct query *query,
			  const struct recorder_scope *scope, const struct recorder_page *page,
			  struct emit *json);
