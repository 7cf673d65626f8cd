/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What "W" saves and the next start reads: lines "name value" in $XDG_CONFIG_HOME/ttmem/top. Whatever
 * else is in the file is ignored, as are values that are not possible: it can do no harm.
 */

#include <stddef.h>

struct model;

#define SETTINGS_SIZE 4096 /* longer files are cut */

/* Where they are; "" if there is no home. Returns @ret_path. */
const char *settings_path(char *ret_path, size_t size);

/* Takes what @text says. */
void settings_parse(struct model *model, const char *text);

/* The text for the model as it is; cut if it does not fit. */
void settings_format(const struct model *model, char *ret_text, size_t size);

/*
 * Reads or writes the file, unless it is below another user's folder: sudo may keep HOME. 0 or a negative
 * errno; without a file, nothing is read.
 */
int settings_load(struct model *model);
int settings_save(const struct model *model);
