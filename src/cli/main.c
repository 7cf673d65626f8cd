/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem: finds the subcommand and runs it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ttmem/ttmem.h>

#include "base/bits.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/flight-file.h"
#include "cli/common/legacy-parts.h"
#include "cli/common/must.h"
#include "model/sites/site.h"
#include "recording/read/recording-file.h"
#include "symbol/symbolizer-process.h"

#define TEXT_OF(x) #x
#define VERSION_OF(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

#define COMMANDS(...) ((const struct command *const[]){__VA_ARGS__, NULL})

/* Grouped by task. */
static const struct {
	const char *title;
	const struct command *const *commands; /* the last is NULL */
} groups[] = {
#ifdef MAIN_WHEEL
	/* In a Python wheel: what needs no library that a machine may lack. */
	{"Who holds the memory now?", COMMANDS(&smi_command, &buffers_command, &fit_command)},
	{"What happened?", COMMANDS(&peak_command, &incidents_command)},
	{"Watch one program", COMMANDS(&run_command)},
#else
	{"Who holds the memory now?",
	 COMMANDS(&smi_command, &top_command, &ps_command, &buffers_command, &map_command,
		  &fit_command, &open_command)},
	{"What happens, and what happened?",
	 COMMANDS(&watch_command, &history_command, &growth_command, &peak_command,
		  &incidents_command, &leaks_command)},
	{"Watch one program", COMMANDS(&run_command, &check_command, &record_command)},
	{"Read recordings", COMMANDS(&report_command, &diff_command, &replay_command)},
	{"For other tools", COMMANDS(&export_command)},
	{"Is everything in order?", COMMANDS(&doctor_command, &selftest_command, &status_command)},
	{"From the old tools", legacy_parts_commands},
	{"Try it", COMMANDS(&demo_command, &bench_command)},
#endif
};

/* Enumerates all commands; NULL after the last. */
static const struct command *main_nth(size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		for (size_t k = 0; groups[i].commands[k]; k++) {
			if (n-- == 0)
				return groups[i].commands[k];
		}
	}
	return NULL;
}

static const struct command *main_find(const char *name)
{
	const struct command *command;

	for (size_t i = 0; (command = main_nth(i)); i++) {
		if (strcmp(command->name, name) == 0)
			return command;
	}
	return NULL;
}

static int main_help(void)
{
	printf("usage: ttmem COMMAND [OPTION]...\n\n"
	       "Which process holds which device memory, how much, of what kind, since when?\n");
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		if (groups[i].commands[0])
			printf("\n%s\n", groups[i].title);
		for (size_t k = 0; groups[i].commands[k]; k++)
			printf("  %-10s %s\n", groups[i].commands[k]->name,
			       groups[i].commands[k]->summary);
	}
	printf("\n\"ttmem COMMAND --help\" lists the options of a command; \"man ttmem-COMMAND\" "
	       "explains\nthem. You see your own processes, root sees all. Where ttmemd runs, you "
	       "also "
	       "see the\ntotals of other users, and what ended processes left.\n");
	return COMMAND_OK;
}

static int main_unknown(const char *name)
{
	const struct command *command;
	const char *best = NULL;
	size_t distance = 3; /* more is not a typing mistake */
	char shown[256];

	text_escape(name, shown, sizeof(shown));
	if (*name == '-') {
		fprintf(stderr, "ttmem: expects a command before options, got \"%s\"\n", shown);
		fprintf(stderr, "Try \"ttmem help\".\n");
		return COMMAND_USAGE;
	}
	for (size_t i = 0; (command = main_nth(i)); i++) {
		size_t d = text_distance(name, command->name);

		if (d < distance) {
			distance = d;
			best = command->name;
		}
	}
	fprintf(stderr, "ttmem: unknown command \"%s\"", shown);
	if (best)
		fprintf(stderr, "; did you mean \"%s\"?", best);
#ifdef MAIN_WHEEL
	fprintf(stderr,
		"\nThis one came with a Python wheel; the package ttmem has more commands.");
#endif
	fprintf(stderr, "\nTry \"ttmem help\".\n");
	return COMMAND_USAGE;
}

/* "ttmem help" and "ttmem help COMMAND". */
static int main_help_command(int argc, char **argv)
{
	char help[] = "--help";
	const struct command *command;
	char *words[3];

	if (argc < 3)
		return main_help();
	command = main_find(argv[2]);
	if (!command)
		return main_unknown(argv[2]);
	words[0] = argv[2];
	words[1] = help;
	words[2] = NULL;
	return command->run(2, words);
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (symbolizer_process_is_meant(argc, argv))
		return symbolizer_process_main(argc, argv);
	if (argc < 2) {
		(void)main_help();
		return COMMAND_USAGE;
	}
	if (strcmp(argv[1], "help") == 0)
		return main_help_command(argc, argv);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return main_help();
	if (strcmp(argv[1], "--version") == 0) {
		printf("ttmem %s\n",
		       VERSION_OF(TTMEM_VERSION_MAJOR, TTMEM_VERSION_MINOR, TTMEM_VERSION_PATCH));
		return COMMAND_OK;
	}
	command = main_find(argv[1]);
	if (!command)
		return main_unknown(argv[1]);
	/* Without memory for it the command will fail anyway. */
	(void)site_skip_frames(secure_getenv("TTMEM_SKIP_FRAMES"));
	must_name(command->name);
	recording_file_elsewhere = flight_file_open;
	return command->run(argc - 1, argv + 1);
}
