/* SPDX-License-Identifier: Apache-2.0 */

/* One pass over the frames, from the inside out. */

#include "model/sites/site.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SITE_RANKS ((unsigned int)SITE_FILE + 1)

static bool site_is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool site_is_same_function(const struct frame *a, const struct frame *b)
{
	return site_is_same_text(a->function, b->function) && site_is_same_text(a->file, b->file);
}

/* A frame of the user's that lies outside the chosen one. */
static void site_add_caller(struct site *site, const struct frame *frame)
{
	const struct frame *last =
		site->caller_count ? &site->callers[site->caller_count - 1] : &site->user;

	if (site->caller_count < SITE_CALLERS && !frame_is_address(frame) &&
	    !site_is_same_function(last, frame))
		site->callers[site->caller_count++] = *frame;
}

/* The user's frame is chosen as the site is, but what is certainly the user's own comes first. */
static void site_consider_user(struct site *site, const struct frame *frame,
			       const struct site_owner_class *class)
{
	unsigned int rank = class->owner == SITE_OTHERS
				    ? 0
				    : (class->owner == SITE_OWN) * SITE_RANKS + class->rank;

	if (rank > site->user_rank) {
		site->user = *frame;
		site->user_rank = rank;
		site->via = site->inner;
		site->has_via = site->has_inner;
		site->caller_count = 0;
	} else if (rank > 0 && (rank > SITE_RANKS || site->user_rank <= SITE_RANKS)) {
		site_add_caller(site, frame);
	}
	if (class->is_call) {
		site->inner = *frame;
		site->has_inner = true;
	}
}

void site_consider(struct site *site, const struct frame *frame)
{
	struct site_owner_class class;
	bool is_complete = site->rank == SITE_FILE && site->user_rank == SITE_RANKS + SITE_FILE &&
			   site->caller_count == SITE_CALLERS;

	if (is_complete || (!frame->function && !frame->file && !frame->module))
		return;
	class = site_owner_of(frame);
	if (class.rank > site->rank) {
		site->frame = *frame;
		site->rank = class.rank;
	}
	site_consider_user(site, frame, &class);
}

bool site_choose(const struct stack *stack, struct site *ret_site)
{
	struct site site = SITE_NULL;

	for (size_t i = 0; stack && i < stack->count; i++)
		site_consider(&site, &stack->frames[i]);
	*ret_site = site;
	return site.rank > 0;
}

const struct frame *site_find(const struct stack *stack)
{
	const struct frame *found = NULL;
	struct site site = SITE_NULL;

	/* Most stacks have their site among the first frames. */
	for (size_t i = 0; stack && i < stack->count && site.rank < SITE_FILE; i++) {
		unsigned int before = site.rank;

		site_consider(&site, &stack->frames[i]);
		if (site.rank > before)
			found = &stack->frames[i];
	}
	return found;
}

const char *site_frame_text(const struct frame *frame, char *ret_text, size_t size)
{
	const char *function = frame->function ? frame->function : "?";

	if (frame->file && frame->line)
		snprintf(ret_text, size, "%s (%s:%" PRIu32 ")", function, frame->file, frame->line);
	else if (frame->file)
		snprintf(ret_text, size, "%s (%s)", function, frame->file);
	else if (frame->module && !frame_is_address(frame))
		snprintf(ret_text, size, "%s (%s)", function, frame->module);
	else
		snprintf(ret_text, size, "%s", function);
	return ret_text;
}

const char *site_text(const struct stack *stack, char *ret_text, size_t size)
{
	const struct frame *frame = site_find(stack);
	const char *slash = frame && frame->file ? strrchr(frame->file, '/') : NULL;
	struct frame bare;

	ret_text[0] = '\0';
	if (!frame)
		return ret_text;
	bare = *frame;
	bare.file = slash ? slash + 1 : frame->file;
	return site_frame_text(&bare, ret_text, size);
}
