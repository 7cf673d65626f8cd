/* SPDX-License-Identifier: Apache-2.0 */

/* Taking snapshots for a command. */

#include "cli/common/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/frame-names.h"
#include "model/frames.h"
#include "model/snapshot.h"
#include "source/books/book-source.h"
#include "source/collect.h"
#include "source/source.h"

struct look {
	struct source *books;
	struct frame_names *names; /* NULL until somebody wants names */
};

int look_new(struct look **ret_look)
{
	CLEANUP_FREE struct look *look = calloc(1, sizeof(*look));
	struct rlimit files;
	int r;

	if (!look)
		return -ENOMEM;
	r = book_source_new(&look->books);
	if (r < 0)
		return r;
	/* Each book costs a descriptor, and a machine may have thousands. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* then fewer books are read, with a note */
	}
	*ret_look = cleanup_steal(look);
	return 0;
}

struct look *look_free(struct look *look)
{
	if (!look)
		return NULL;
	source_free(look->books);
	frame_names_free(look->names);
	free(look);
	return NULL;
}

void look_cleanup(struct look **look)
{
	look_free(*look);
}

void look_cleanup_snapshot(struct snapshot **snapshot)
{
	snapshot_free(*snapshot);
}

int look_take(struct look *look, const struct snapshot_request *request,
	      struct snapshot **ret_snapshot)
{
	struct collect_sources sources;

	book_source_sources(look->books, &sources);
	return collect_machine(&sources, request, ret_snapshot);
}

int look_refresh(struct look *look)
{
	return book_source_refresh(look->books);
}

struct namer *look_namer(struct look *look)
{
	/* Without memory for names there are addresses. */
	if (!look->names && frame_names_new(&look->names) < 0)
		return NULL;
	frame_names_renew(look->names);
	return frame_names_namer(look->names);
}

void look_pace(struct look *look, uint64_t ns)
{
	book_source_pace(look->books, ns);
}

void look_print_frame(const struct frames_one *frame)
{
	text_put(stdout, frame->function ? frame->function : "?");
	if (frame->file) {
		fputs(" (", stdout);
		text_put(stdout, frame->file);
		if (frame->line)
			printf(":%" PRIu32, frame->line);
		putchar(')');
	} else if (frame->module && !frames_is_address(frame)) {
		fputs(" (", stdout);
		text_put(stdout, frame->module);
		putchar(')');
	}
}

void look_print_stack(const char *stack, const char *indent)
{
	CLEANUP(frames_deinit) struct frames frames;
	struct frames_one frame;

	frames_init(&frames, stack);
	while (frames_next(&frames, &frame)) {
		fputs(indent, stdout);
		look_print_frame(&frame);
		putchar('\n');
	}
}

struct daemon_client *look_remote(struct look *look)
{
	return book_source_remote(look->books);
}

struct scan *look_scan(struct look *look)
{
	return book_source_scan(look->books);
}

void look_print_notes(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->note_count; i++) {
		fputs("note: ", stderr);
		text_put(stderr, snapshot->notes[i]);
		fputc('\n', stderr);
	}
	if (snapshot->notes_lost)
		fprintf(stderr, "note: and %zu more notes\n", snapshot->notes_lost);
}
