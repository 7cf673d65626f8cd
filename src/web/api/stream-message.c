/* SPDX-License-Identifier: Apache-2.0 */

/* Server-sent events: "event: KIND", "data: " and a document on one line, and an empty line. */

#include "web/api/stream-message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answers/document.h"
#include "answers/incidents.h"
#include "base/emit.h"
#include "model/filter.h"
#include "web/api/changes.h"
#include "web/server/body.h"
#include "web/server/pack.h"
#include "web/server/web.h"

#define STREAM_MESSAGE_TOTALS "event: totals\ndata: "

void stream_message_deinit(struct stream_message *message)
{
	body_unref(message->plain);
	body_unref(message->packed);
	*message = STREAM_MESSAGE_NULL;
}

struct body *stream_message_form(const struct stream_message *message, bool packed)
{
	return packed ? message->packed : message->plain;
}

void stream_message_pack(struct stream_message *message)
{
	if (message->plain && !message->packed)
		message->packed = pack_piece(message->plain);
}

void stream_message_frame(struct stream_message *message)
{
	if (message->plain && !message->packed)
		message->packed = pack_stored(message->plain);
}

static FILE *stream_message_open(struct stream_message *message, struct body_purse *purse)
{
	FILE *out;

	*message = (struct stream_message){.plain = body_new(purse)};
	out = message->plain ? body_open(message->plain) : NULL;
	if (!out)
		stream_message_deinit(message);
	return out;
}

static void stream_message_close(struct stream_message *message, FILE *out)
{
	fputc('\n', out);
	if (fclose(out) != 0 || message->plain->error < 0)
		stream_message_deinit(message);
}

void stream_message_totals(struct stream_message *message, struct body_purse *purse,
			   const struct snapshot *snapshot)
{
	const struct filter filter = {0};
	FILE *out = stream_message_open(message, purse);
	struct emit json = EMIT_INIT(out);

	if (!out)
		return;
	fputs(STREAM_MESSAGE_TOTALS, out);
	document_smi(&json, snapshot, &filter, NULL); /* ends with a newline */
	stream_message_close(message, out);
}

/* The document of such a message. */
static struct changes_text stream_message_document(const struct body *totals)
{
	size_t before = strlen(STREAM_MESSAGE_TOTALS);

	return (struct changes_text){totals->text + before,
				     totals->length - before - strlen("\n\n")};
}

void stream_message_changes(struct stream_message *message, const struct body *was,
			    const struct body *now, uint64_t after_ns)
{
	struct body *body = body_new(now->purse);
	char begin[64];
	int length =
		snprintf(begin, sizeof(begin),
			 "event: changes\ndata: {\"after_ns\":%" PRIu64 ",\"change\":", after_ns);

	*message = (struct stream_message){.plain = body};
	/* Nothing at all (0) is not possible: the time has changed. */
	if (!body || body_append(body, begin, (size_t)length) < 0 ||
	    changes_append(stream_message_document(was), stream_message_document(now), body) <= 0 ||
	    body_append(body, "}\n\n", 3) < 0)
		stream_message_deinit(message);
}

void stream_message_incident(struct stream_message *message, struct body_purse *purse,
			     const struct web_incident *incident, bool details)
{
	const struct incident_brief brief = {incident->kind, incident->pid, incident->device};
	FILE *out = stream_message_open(message, purse);
	struct emit json = EMIT_INIT(out);

	if (!out)
		return;
	fputs("event: incident\ndata: ", out);
	if (details) {
		/*
		 * Line breaks in JSON are only white space, but in the stream they would end the
		 * line.
		 */
		for (size_t i = 0; i < incident->length; i++) {
			char c = incident->json[i];

			fputc(c == '\n' || c == '\r' ? ' ' : c, out);
		}
		fputc('\n', out);
	} else {
		document_put_about(&json, &stream_document, NULL, &brief);
	}
	stream_message_close(message, out);
}

static void stream_message_text(struct stream_message *message, struct body_purse *purse,
				const char *text)
{
	*message = (struct stream_message){.plain = body_new(purse)};
	if (!message->plain || body_append(message->plain, text, strlen(text)) < 0)
		stream_message_deinit(message);
	stream_message_frame(message);
}

void stream_message_stored(struct stream_message *message, struct body_purse *purse,
			   uint64_t records)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "event: stored\ndata: {\"records\":%" PRIu64 "}\n\n",
		       records); /* fits */
	stream_message_text(message, purse, text);
}

void stream_message_alive(struct stream_message *message, struct body_purse *purse)
{
	stream_message_text(message, purse, ": keep-alive\n\n");
}
