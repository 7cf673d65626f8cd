/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.session/1 and ttmem.open/1. */

#include "answers/session.h"

#include "answers/document.h"

#define ROW struct session_row

const struct field session_fields[] = {
	FIELD("user", TEXT, user, .says = "whose rights the browser has"),
	FIELD("user_id", SHORT, user_id),
	FIELD("sees_all", BOOL, sees_all,
	      .says = "the details of all processes, else of the user's own"),
	FIELD_END,
};

#undef ROW
#define ROW struct session_answer

static const struct field session_members[] = {
	FIELD_POINTED("session", session, session_fields, .says = "null: nobody is signed in"),
	FIELD_END,
};

const struct document session_document = {
	.schema = "ttmem.session/1",
	.title = "/api/v1/sign-in and /api/v1/sign-out: who is signed in now",
	.members = session_members,
};

#undef ROW
#define ROW struct open_row

static const struct field open_members[] = {
	FIELD("url", TEXT, url, .says = "the dashboard; the link is this, then #/open/CODE"),
	FIELD("code", TEXT, code, .says = "64 hexadecimal digits"),
	FIELD("seconds", NUMBER, seconds, .least = 1, .says = "until it expires"),
	FIELD("user", TEXT, session.user, .says = "whose rights the browser gets: who asked"),
	FIELD("user_id", SHORT, session.user_id),
	FIELD("browser_id", SHORT, browser_id, .says = "the user whose browser can use it"),
	FIELD("sees_all", BOOL, session.sees_all,
	      .says = "the details of all processes, else of the user's own"),
	FIELD_END,
};

const struct document open_document = {
	.schema = "ttmem.open/1",
	.title = "/api/v1/open on the daemon's unix socket: a code that signs a browser in once",
	.members = open_members,
};
