/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem report --serve: the dashboard of a recording, for one user's browser. */

#include <stdbool.h>

struct report_serve {
	const char *file;
	const char *at; /* where the page begins; NULL = at the peak */
	bool print;     /* the link only: no browser is opened */
};

/* Until the user ends it. Return: exit code. */
int report_serve(const struct report_serve *wish);
