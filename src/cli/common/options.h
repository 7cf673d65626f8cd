/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Options of a command, as a table: parsing, --help and "did you mean" all come from it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct answer;
struct query;

struct options_item {
	char letter;      /* 0 = no short form */
	const char *name; /* without the dashes; NULL = no long form */
	/* Its placeholder in --help; NULL = a switch; "[=X]": it may be left out, then it is "". */
	const char *argument;
	const char *help;
	void *target; /* of a switch: the bool * to set */
	/* With an argument: 0, or a negative errno if @text is invalid. NULL: the query's field of that name. */
	int (*parse)(void *target, const char *text);
};

struct options {
	const char *command;   /* "smi" */
	const char *arguments; /* for the usage line: what follows the options, or NULL */
	const char *summary;
	const struct options_item *items;
	size_t count;
	struct query *query; /* for items that are its fields */
	/* Which those may be: what the command's answer honours; or, if that is not over HTTP, */
	const struct answer *answer;
	uint32_t honours;
	bool shows_sizes;   /* prints sizes as text: --bytes gives exact ones */
	bool stop_at_first; /* the first non-option ends the options, as before a command to run */
};

enum options_outcome {
	OPTIONS_HELP = 1, /* --help was printed */
};

/*
 * Parses argv[1] onwards. Non-options are moved to the front, starting at argv[0], NULL-terminated,
 * and counted in @ret_count. 0, OPTIONS_HELP, or -EINVAL after the mistake was reported on stderr.
 */
int options_parse(const struct options *options, int argc, char **argv, int *ret_count);

/* options_parse() for commands that take options only: any other word is a mistake. */
int options_parse_only(const struct options *options, int argc, char **argv);

/* The exit code for a non-zero result of these two. */
int options_exit(int result);

/* Reports a usage mistake: "ttmem COMMAND: ..." and a hint to --help. Returns -EINVAL. */
int options_mistake(const char *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Reports another number of arguments than the command takes, which @expected names. -EINVAL. */
int options_count(const struct options *options, const char *expected, int count);

/* For commands that can show a moment of a recording instead of now: their part of the table. */
struct options_from {
	const char *file; /* NULL = now */
	const char *at;   /* NULL = the end, but see is_state */
	/*
	 * The command shows what is live at the moment, and nothing of before: where nothing is at the end,
	 * as in every run that frees its memory, the moment is the peak unless @at says otherwise.
	 */
	bool is_state;
};

/* clang-format off */
#define OPTIONS_FROM(from)                                                                       \
	{0, "from", "FILE", "show a recording, not this machine", &(from)->file, options_text},  \
	{0, "at", "TIME", "then: 12.5 (s), 16:03:12, a mark, a phase, peak, failed, end",        \
	 &(from)->at, options_text}
/* clang-format on */

/* Parsers for the table. */
int options_text(void *target, const char *text); /* const char ** */
int options_size(void *target, const char *text); /* uint64_t *, 1 or more */
int options_since(void *query, const char *text); /* struct query * */
int options_u32(void *target, const char *text);  /* uint32_t *, at least 1 */
