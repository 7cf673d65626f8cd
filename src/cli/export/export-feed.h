/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The course of events of a recording, as formats are fed with it (export-form.h). What was live when the
 * recording of a device began comes first, as allocations with the number 0; after a gap come the
 * allocations and frees that make up for it, so that what is in use is right again. 
 */

#include <stddef.h>
#include <stdint.h>

#include "recording/read/recording.h"

struct export_counts;
struct export_feed;
struct export_form;
struct export_owner;
struct export_target;
struct filter;

/* The recording and @filter must outlive it. @until: where it ends. */
struct export_feed *export_feed_new(struct recording *recording, const struct filter *filter,
				    const struct recording_moment *until);
struct export_feed *export_feed_free(struct export_feed *feed);

/* All processes of the recording; they live as long as the feed. */
const struct export_owner *export_feed_owners(const struct export_feed *feed, size_t *ret_count);

/* See export_counts_find(). */
int export_feed_counts(struct export_feed *feed, struct export_counts *counts);

/* An export_course_fn; @context is a struct export_feed. -EINTR: stopped by Ctrl-C. */
int export_feed_course(void *context, const struct export_form *form, void *state,
		       const struct export_target *target);
