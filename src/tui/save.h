/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Saves what is shown to a file: the document that the command of that name prints with --json. */

struct model;

#define SAVE_NAME_SIZE 64

/* Writes a new file @ret_name in the working directory, never over another. 0 or negative errno. */
int save_snapshot(const struct model *model, char ret_name[SAVE_NAME_SIZE]);
