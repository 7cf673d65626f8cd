/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Output of commands: silent when the pipe is closed, colours only on a terminal. */

#include <stdbool.h>
#include <stdio.h>

/*
 * Call before the first output of a command that only reads: a closed pipe is then a write error,
 * not a signal.
 */
void output_start(void);

/* Whether writing has failed, for commands that run in a loop. */
bool output_is_broken(void);

/*
 * Call before a list that may be long: on a terminal it goes through a pager ($TTMEM_PAGER, $PAGER,
 * less; "cat" or "" = none). less exits at once if everything fits on the screen.
 */
void output_page(void);

/* Flushes at the end. Return: exit code; a failure such as a full disk is reported on stderr. */
int output_finish(void);

/*
 * Writes a file that the user has named; - is standard output. 0, or -1 after the reason was reported.
 */
int output_write_file(const char *command, const char *path,
		      void (*put)(const void *context, FILE *out), const void *context);

/* A failure of a command: "ttmem COMMAND: text: reason". Return: exit code. */
int output_fail(const char *command, const char *text, int error);

bool output_is_terminal(void);
bool output_has_colours(void);
bool output_is_utf8(void);

/* Rows of the terminal; 24 if unknown. */
unsigned int output_rows(void);

/* Its columns; without a terminal $COLUMNS, else 80. */
unsigned int output_columns(void);

/*
 * Columns of the terminal that shows the output, also through the pager; 0 = no terminal: what
 * another program reads is not fitted into anything.
 */
unsigned int output_width(void);

/*
 * Writes a sentence, already escaped, that begins @indent columns from the left. On a terminal it is
 * broken between words, and further lines are indented likewise.
 */
void output_put_wrapped(const char *text, unsigned int indent);

/* Ctrl-C and SIGTERM end the loop of a command instead of the process. */
void output_catch_stop(void);
bool output_is_stopped(void);

/* Sleeps; a stop signal ends the sleep early. */
void output_sleep(unsigned int ms);
