/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The subcommands of ttmem. Each is one file, cli/NAME.c, that defines NAME_command; a new one is
 * declared here and listed in main.c.
 */

/* Exit codes that all commands share. */
enum command_exit {
	COMMAND_OK = 0,
	COMMAND_FAILED = 1,
	COMMAND_USAGE = 2,
	COMMAND_EXCEEDED = 86,  /* a check failed: a leak, or more than a limit */
	COMMAND_UNTRACKED = 87, /* nothing was tracked, so nothing was checked */
};

struct command {
	const char *name;
	const char *summary; /* one line for "ttmem help" */
	/* argv[0] is the command's name, argv[argc] is NULL. Return: exit code. */
	int (*run)(int argc, char **argv);
};

extern const struct command analyze_command;
extern const struct command bench_command;
extern const struct command buffers_command;
extern const struct command check_command;
extern const struct command demo_command;
extern const struct command diff_command;
extern const struct command doctor_command;
extern const struct command dump_command;
extern const struct command export_command;
extern const struct command fit_command;
extern const struct command growth_command;
extern const struct command history_command;
extern const struct command incidents_command;
extern const struct command leaks_command;
extern const struct command map_command;
extern const struct command open_command;
extern const struct command peak_command;
extern const struct command ps_command;
extern const struct command record_command;
extern const struct command report_command;
extern const struct command replay_command;
extern const struct command run_command;
extern const struct command selftest_command;
extern const struct command smi_command;
extern const struct command status_command;
extern const struct command top_command;
extern const struct command watch_command;
