/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Takes stacks apart into names, and finds those that somebody who misspelled one may have meant: a few
 * letters differ, or one contains the other.
 */

#include "cli/budget/budget-names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/budget/budget-summary.h"
#include "cli/budget/budget.h"
#include "cli/common/must.h"
#include "model/sites/stack.h"

#define BUDGET_TYPO 3u /* edits; more are another word */
#define BUDGET_FAR SIZE_MAX

bool budget_names_next(struct budget_names *names, const char **ret_name)
{
	char *part = names->function, *arrow, *colon;

	names->function = NULL;
	if (part) {
		*ret_name = part;
		return true;
	}
	part = names->next;
	if (!part)
		return false;
	arrow = strstr(part, STACK_CALLED_BY);
	if (arrow)
		*arrow = '\0';
	names->next = arrow ? arrow + strlen(STACK_CALLED_BY) : NULL;
	colon = strchr(part, ':');
	/* "file:function"; "a::b" is a function without a file. */
	if (colon && colon[1] != ':') {
		*colon = '\0';
		names->function = colon + 1;
	}
	*ret_name = part;
	return true;
}

/* How far a name is from a pattern, whose wildcards are left out; BUDGET_FAR: another word. */
static size_t budget_near_distance(const char *name, const char *pattern)
{
	char word[BUDGET_NEAR_SIZE];
	size_t length = 0, distance;

	for (; *pattern && length + 1 < sizeof(word); pattern++) {
		if (!strchr("*?[]", *pattern))
			word[length++] = *pattern;
	}
	word[length] = '\0';
	if (length == 0 || !*name)
		return BUDGET_FAR;
	distance = text_distance(name, word);
	if (distance <= BUDGET_TYPO && distance < length)
		return distance;
	return strcasestr(name, word) || (strlen(name) > 2 && strcasestr(word, name))
		       ? BUDGET_TYPO + 1
		       : BUDGET_FAR;
}

/* Keeps the nearest names; of equally far ones the first, whose parts are larger. */
static void budget_near_offer(struct budget_near *near, size_t distances[BUDGET_NEAR_MAX],
			      const char *name, size_t distance)
{
	size_t at = near->count;

	for (size_t i = 0; i < near->count; i++) {
		if (strncmp(near->names[i], name, BUDGET_NEAR_SIZE - 1) == 0)
			return;
	}
	while (at > 0 && distance < distances[at - 1])
		at--;
	if (at == BUDGET_NEAR_MAX)
		return;
	if (near->count < BUDGET_NEAR_MAX)
		near->count++;
	for (size_t i = near->count - 1; i > at; i--) {
		memcpy(near->names[i], near->names[i - 1], BUDGET_NEAR_SIZE);
		distances[i] = distances[i - 1];
	}
	(void)snprintf(near->names[at], BUDGET_NEAR_SIZE, "%s", name);
	distances[at] = distance;
}

static void budget_near_part(struct budget_near *near, size_t distances[BUDGET_NEAR_MAX],
			     const struct budget_limit *limit, const struct budget_part *part)
{
	CLEANUP_FREE char *copy = part->calls ? must_copy(part->calls) : NULL;
	struct budget_names names = {.next = copy};
	const char *name;

	if (limit->subject == BUDGET_PHASE) {
		if (part->phase)
			budget_near_offer(near, distances, part->phase,
					  budget_near_distance(part->phase, limit->pattern));
		return;
	}
	while (budget_names_next(&names, &name))
		budget_near_offer(near, distances, name,
				  budget_near_distance(name, limit->pattern));
}

struct budget_near budget_near(const struct budget_limit *limit,
			       const struct budget_summary *summary)
{
	struct budget_near near = {.count = 0};
	size_t distances[BUDGET_NEAR_MAX];

	for (size_t i = 0; i < summary->count; i++) {
		for (size_t k = 0; k < summary->moments[i].part_count; k++)
			budget_near_part(&near, distances, limit, &summary->moments[i].parts[k]);
	}
	near.is_near = near.count > 0 && distances[0] != BUDGET_FAR;
	while (near.is_near && distances[near.count - 1] == BUDGET_FAR)
		near.count--;
	return near;
}
