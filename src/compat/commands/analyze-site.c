/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frame that stands for a stack of a log. The logs write "module: function",
 * "module : function+0x12", "module(function+0x12) [0x55]" or "module(+0x12)", innermost first.
 */

#include <stdlib.h>
#include <string.h>

#include "answers/call-stack.h"
#include "answers/document.h"
#include "base/cleanup.h"
#include "compat/commands/analyze.h"
#include "model/sites/site.h"
#include "model/sites/stack.h"

/* Cuts "+0x12" off the end. */
static void analyze_site_cut_offset(char *function)
{
	char *plus = strrchr(function, '+');

	if (plus && strncmp(plus, "+0x", 3) == 0 &&
	    plus[3 + strspn(plus + 3, "0123456789abcdefABCDEF")] == '\0')
		*plus = '\0';
}

/* Takes a line apart, in place. */
static struct frame analyze_site_frame(char *line)
{
	struct frame frame = {.module = line};
	char *colon = strstr(line, ": "), *open = strchr(line, '(');
	char *function = NULL, *slash;

	if (colon && (!open || colon < open)) {
		function = colon + 2;
		*(colon > line && colon[-1] == ' ' ? colon - 1 : colon) = '\0';
	} else if (open) {
		char *close = strrchr(open, ')');

		function = open + 1;
		*open = '\0';
		if (close)
			*close = '\0';
	} else {
		line[strcspn(line, " ")] = '\0';
	}
	if (function)
		analyze_site_cut_offset(function);
	frame.function = function && *function ? function : NULL;
	slash = strrchr(line, '/');
	if (slash)
		frame.module = slash + 1;
	return frame;
}

void analyze_site_json(struct emit *json, const char *stack)
{
	CLEANUP_FREE char *copy = stack ? strdup(stack) : NULL;
	struct site site = SITE_NULL;
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n"))) {
		struct frame frame;

		line += strspn(line, " \t");
		if (!*line)
			continue;
		frame = analyze_site_frame(line);
		site_consider(&site, &frame);
	}
	call_stack_put_site(json, &site);
}
