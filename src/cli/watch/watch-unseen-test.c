/* SPDX-License-Identifier: Apache-2.0 */

/* What is said about a process that nobody has seen. */

#include "cli/watch/watch-unseen.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"

UNIT(a_name_cannot_command_the_terminal)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert(out);
	watch_unseen_put(out, 7, "a\033[2J\n\xc2\x9b");
	assert(fclose(out) == 0);
	assert(strcmp(text,
		      "note: pid 7 (a\\x1b[2J\\x0a\\x9b) ended before it could be followed\n") ==
	       0);
	free(text);
}
