/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who is signed in (ttmem.session/1), and a link that signs a browser in (ttmem.open/1). */

#include <stdbool.h>
#include <stdint.h>

#include "answers/fields.h"

struct document;

struct session_row {
	const char *user; /* NULL = nobody */
	uint32_t user_id;
	bool sees_all;
};

struct session_answer {
	const struct session_row *session; /* NULL = nobody is signed in */
};

struct open_row {
	const char *url, *code;
	uint64_t seconds; /* until it expires */
	struct session_row session;
	uint32_t browser_id;
};

extern const struct field session_fields[];    /* of a session */
extern const struct document session_document; /* its row: an answer */
extern const struct document open_document;    /* its row: an open_row */
