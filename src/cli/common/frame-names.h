/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for the native frames that a command shows, from the same symbolizer as the daemon's:
 * processes without privileges parse the files, so a malicious file spoils only its own names.
 */

#include <stdint.h>

#include "model/sites/namer.h"

struct frame_names;

/* 0 or a negative errno. No process is started before the first lookup. */
int frame_names_new(struct frame_names **ret_names);
struct frame_names *frame_names_free(struct frame_names *names);

/* All lookups share one time limit; this restarts it. */
void frame_names_renew(struct frame_names *names);

/* For a snapshot request; owned by @names. */
struct namer *frame_names_namer(struct frame_names *names);

/* Number of lookups that were not answered from the cache. */
uint64_t frame_names_questions(const struct frame_names *names);
