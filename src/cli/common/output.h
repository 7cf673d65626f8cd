/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How commands write: quietly into a closed pipe, with colours only where somebody sees them. */

#include <stdbool.h>

/* Before the first output of a reading command: a closed pipe is an error to look at, not a signal. */
void output_start(void);

/* Whether nobody takes what is written any more; for commands that go on and on. */
bool output_is_broken(void);

/*
 * Before a list that may be long: on a terminal it goes through a pager ($TTMEM_PAGER, $PAGER, less; "cat" or
 * "" = none), which shows what fits on the screen at once.
 */
void output_page(void);

/* At the end: flushes. Return: exit code, with a word on stderr if the disk is full, say. */
int output_finish(void);

/* A failure of a command: "ttmem COMMAND: text: reason". Return: exit code. */
int output_fail(const char *command, const char *text, int error);

bool output_is_terminal(void);
bool output_has_colours(void);
bool output_is_utf8(void);

/* Rows of the terminal; 24 if that cannot be known. */
unsigned int output_rows(void);

/* Its columns; without a terminal those of COLUMNS, else 80. */
unsigned int output_columns(void);

/* Ctrl-C and SIGTERM end the loop of a command instead of the process. */
void output_catch_stop(void);
bool output_is_stopped(void);

/* Sleeps, less if it is stopped. */
void output_sleep(unsigned int ms);
