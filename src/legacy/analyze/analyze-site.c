/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stack of a log, and the frame that stands for it. The logs write "module: function",
 * "module : function+0x12", "module(function+0x12) [0x55]" or "module(+0x12)", innermost first.
 */

#include <stdlib.h>
#include <string.h>

#include "answers/call-stack.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "cli/common/must.h"
#include "legacy/analyze/analyze.h"
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

static void analyze_put_stack(struct emit *json, const char *key, const void *row)
{
	const char *const *stack = row;
	CLEANUP_FREE char *copy = *stack ? must_copy(*stack) : NULL;
	struct site site = SITE_NULL;
	char *rest = copy, *line;

	emit_open_array(json, key);
	while ((line = strsep(&rest, "\n"))) {
		struct frame frame;

		if (*line || rest)
			emit_string(json, NULL, line);
		line += strspn(line, " \t");
		if (!*line)
			continue;
		frame = analyze_site_frame(line);
		site_consider(&site, &frame);
	}
	emit_close_array(json);
	call_stack_put_site(json, &site);
}

static const struct field analyze_stack_parts[] = {
	{.key = "stack",
	 .kind = FIELD_TEXTS,
	 .says = "frames as the log has them, innermost first"},
	FIELD_MORE(call_stack_chosen),
	FIELD_END,
};

const struct field analyze_stack_fields[] = {
	FIELD_CODED("stack", analyze_put_stack, .fields = analyze_stack_parts),
	FIELD_END,
};
