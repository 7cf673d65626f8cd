/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is shown, as a file: the document that the command of the same name prints with --json. */

struct model;

#define SAVE_NAME_SIZE 64

/* A new file in the working folder, never over another one; its name. 0 or a negative errno. */
int save_snapshot(const struct model *model, char ret_name[SAVE_NAME_SIZE]);
