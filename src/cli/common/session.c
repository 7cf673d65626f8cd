/* SPDX-License-Identifier: Apache-2.0 */

/* Taking snapshots for a command. */

#include "cli/common/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/frame-names.h"
#include "cli/common/session-cards.h"
#include "cli/common/session-private.h"
#include "model/sites/group.h"
#include "model/sites/site-rows.h"
#include "model/sites/site.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"
#include "recording/read/recording-source.h"
#include "source/books/book-source.h"
#include "source/collect.h"
#include "source/host/card-watch.h"
#include "source/source.h"

#define SESSION_NAMES 5u /* shown of a call site; --json has more */
#define SESSION_WRAPPER 256u

int session_new(struct session **ret_session)
{
	CLEANUP_FREE struct session *session = calloc(1, sizeof(*session));
	struct rlimit files;
	int r;

	if (!session)
		return -ENOMEM;
	r = card_watch_new(&session->cards);
	if (r == 0)
		r = book_source_new(&session->books);
	if (r < 0) {
		card_watch_free(session->cards);
		return r;
	}
	/* Each book costs a descriptor, and a machine may have thousands. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* else fewer books, with a note */
	}
	*ret_session = cleanup_steal(session);
	return 0;
}

struct session *session_free(struct session *session)
{
	if (!session)
		return NULL;
	source_free(session->books);
	recording_free(session->recording);
	card_watch_free(session->cards);
	frame_names_free(session->names);
	free(session);
	return NULL;
}

void session_cleanup(struct session **session)
{
	session_free(*session);
}

static int session_take_recorded(struct session *session, const struct snapshot_request *request,
				 struct snapshot **ret_snapshot)
{
	struct snapshot_request complete = *request;
	struct collect_sources sources;
	int r;

	/* Whoever asks a recording means those who have ended, too. */
	complete.ended = true;
	recording_source_sources(session->books, &sources);
	r = collect_machine(&sources, &complete, ret_snapshot);
	if (r < 0)
		return r;
	recording_tell(session->recording, *ret_snapshot);
	if (session->is_peak)
		snapshot_note(*ret_snapshot,
			      "nothing was live at the end of the recording: this is "
			      "its peak (--at end shows the end)");
	return 0;
}

int session_take(struct session *session, const struct snapshot_request *request,
		 struct snapshot **ret_snapshot)
{
	struct collect_sources sources;
	int r;

	if (session->recording)
		return session_take_recorded(session, request, ret_snapshot);
	if (!session->has_asked && !request->limit)
		session_ask_cards(session_remote(session), session->cards);
	session->has_asked = session->has_asked || !request->limit;
	book_source_sources(session->books, &sources);
	sources.cards = session->cards;
	r = collect_machine(&sources, request, ret_snapshot);
	/* Those of only some processes say nothing about the others. */
	if (r == 0 && !request->limit && !request->filter.pid)
		card_watch_learn(session->cards, *ret_snapshot);
	return r;
}

int session_refresh(struct session *session)
{
	return session->recording ? 0 : book_source_refresh(session->books);
}

struct namer *session_namer(struct session *session)
{
	if (session->recording)
		return recording_namer(session->recording);
	/* Without memory for names, addresses are shown. */
	if (!session->names && frame_names_new(&session->names) < 0)
		return NULL;
	frame_names_renew(session->names);
	return frame_names_namer(session->names);
}

void session_pace(struct session *session, uint64_t ns)
{
	if (!session->recording)
		book_source_pace(session->books, ns);
}

void session_print_stack(FILE *out, const struct stack *stack, const char *indent)
{
	char function[STACK_SHOWN], text[STACK_LINE];
	struct frame frame;

	for (size_t i = 0; stack && i < stack->count;) {
		i = stack_shown(stack, i, &frame, function);
		fputs(indent, out);
		text_put(out, site_frame_text(&frame, text, sizeof(text)));
		fputc('\n', out);
		if (frame.is_cut)
			fprintf(out, "%s%s\n", indent, FRAME_CUT_LINE);
	}
}

static char session_tip[SESSION_WRAPPER]; /* "" = none yet */

void session_find_tip(const struct site_rows *rows)
{
	if (!*session_tip)
		(void)site_rows_wrapper(rows, session_tip, sizeof(session_tip));
}

void session_print_tip(FILE *out)
{
	const char *name = session_tip;

	if (!*name)
		return;
	(void)fputs("tip: most of these were allocated through ", out);
	text_put(out, name);
	(void)fputs("; TTMEM_SKIP_FRAMES=", out);
	text_put(out, name);
	(void)fputs(" shows its callers instead\n", out);
}

void session_print_names(FILE *out, const struct call_site *names, size_t listed, size_t count,
			 const char *indent)
{
	size_t shown = bits_min(listed, SESSION_NAMES);
	char number[TEXT_NUMBER_SIZE];

	if (count < 2)
		return;
	for (size_t i = 0; i < shown; i++) {
		fprintf(out, "%s%10s %9" PRIu64 "  ", indent, text_size(names[i].bytes, number),
			names[i].buffers);
		text_put(out, names[i].name ? names[i].name : "(no name)");
		if (names[i].phase) {
			fputs(" in ", out);
			text_put(out, names[i].phase);
		}
		fputc('\n', out);
	}
	if (count > shown)
		fprintf(out, "%s... and %zu more names\n", indent, count - shown);
}

struct daemon_client *session_remote(struct session *session)
{
	return session->recording ? NULL : book_source_remote(session->books);
}

struct scan *session_scan(struct session *session)
{
	return session->recording ? recording_source_scan(session->books)
				  : book_source_scan(session->books);
}

void session_print_notes(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->note_count; i++) {
		fputs("note: ", stderr);
		text_put(stderr, snapshot->notes[i]);
		fputc('\n', stderr);
	}
	if (snapshot->notes_lost)
		fprintf(stderr, "note: and %zu more notes\n", snapshot->notes_lost);
}
