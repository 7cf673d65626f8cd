/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What has changed from one JSON document to the next, as JSON (docs/http.md has the format, under
 * "Changes"). It knows nothing of what the documents mean, so new members need nothing here:
 *
 *	a number, a text, true, false, null	the value is that now
 *	{"=":VALUE}		the value is that now
 *	{"KEY":CHANGE,...}	these members of the object have changed, and no others
 *	[STEP,...]		the rows of the list, from the first one: N: the next N are the same;
 *				-N: the next N are gone; {"+":ROW}: a new one; a change: of the next
 *				one. Those behind the last step are the same
 *
 * Rows are told apart by their first member, a number, in whose order they should be: otherwise
 * the result is still right, but larger.
 *
 * The texts are those that base/emit.h writes: correct, and without white space.
 */

#include <stddef.h>

struct body;

struct changes_text {
	const char *text;
	size_t length;
};

/*
 * Appends the change from @was to @now, 1; or nothing, 0: they are the same. A negative errno: that
 * of @out, or -EINVAL if one of the texts is no such JSON; then @out is of no use.
 */
int changes_append(struct changes_text was, struct changes_text now, struct body *out);
