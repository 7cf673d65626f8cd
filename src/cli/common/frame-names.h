/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for the native frames that a command shows, by the same symbolizer as the daemon's: files that the
 * command may read are looked into by processes without rights, so a file that was made to hurt costs its
 * own names and nothing else.
 */

#include <stdint.h>

#include "model/namer.h"

struct frame_names;

/* 0 or a negative errno. No process is started before the first question. */
int frame_names_new(struct frame_names **ret_names);
struct frame_names *frame_names_free(struct frame_names *names);

/* There is a time for all questions together; from now on it begins anew. */
void frame_names_renew(struct frame_names *names);

/* What a request takes; stays ours. */
struct namer *frame_names_namer(struct frame_names *names);

/* How often something was asked that was not known. */
uint64_t frame_names_questions(const struct frame_names *names);
