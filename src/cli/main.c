/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem: finds the subcommand and runs it. */

#include <stdio.h>
#include <string.h>
#include <ttmem/ttmem.h>

#include "base/bits.h"
#include "base/text.h"
#include "cli/command.h"

#define TEXT_OF(x) #x
#define VERSION_OF(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

/* In the order in which people meet them. */
static const struct command *const commands[] = {
	&smi_command,     &ps_command,        &buffers_command, &growth_command,
	&history_command, &incidents_command, &leaks_command,   &watch_command,
	&run_command,     &status_command,    &doctor_command,  &dump_command,
	&analyze_command, &selftest_command,  &demo_command,    &bench_command,
};

static const struct command *main_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

static int main_help(void)
{
	printf("usage: ttmem COMMAND [OPTION]...\n\n"
	       "Which process holds which device memory, how much, of what kind, since when?\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	printf("\n\"ttmem COMMAND --help\" tells the options of a command, \"man ttmem-COMMAND\" "
	       "more.\nAs an ordinary user you see your own processes, as root all; where ttmemd "
	       "runs,\ntotals of everybody, and it remembers the past.\n");
	return COMMAND_OK;
}

static int main_unknown(const char *name)
{
	const char *best = NULL;
	size_t distance = 3; /* further away is no slip of the fingers */
	char shown[256];

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		size_t d = text_distance(name, commands[i]->name);

		if (d < distance) {
			distance = d;
			best = commands[i]->name;
		}
	}
	text_escape(name, shown, sizeof(shown));
	fprintf(stderr, "ttmem: unknown command \"%s\"", shown);
	if (best)
		fprintf(stderr, "; did you mean \"%s\"?", best);
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
	return command->run(argc - 1, argv + 1);
}
