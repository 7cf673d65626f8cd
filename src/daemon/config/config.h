/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What ttmemd is told: by its configuration file, then by the environment, then by the command line,
 * the later ones winning. Every setting is a long option and, without the dashes, a key of the file; one
 * table (config-keys.c) has them all. A mistake in the file names file and line.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_NONE "none"

#define CONFIG_BYTES_MAX (UINT32_C(64) << 10) /* of a configuration file */

struct config {
	/* All texts are the config's; NULL = not set and no default. */
	char *socket;        /* native socket, never NULL */
	char *legacy_socket; /* "none" = not served */
	char *http;          /* "none" = not served */
	char *state;         /* folder */
	char *log;           /* file for what is said; NULL = standard output */
	char *on_incident;   /* shell command */
	char *http_hosts;    /* NULL = none */
	char *otlp;          /* NULL = nothing is pushed */
	uint32_t otlp_interval_s;
	char *token_file; /* default: "http-token" in the state folder */
	char *group;      /* whose members see everything: "ttmem" */
	bool http_details;
	bool log_events;
	bool decimal_ids;
	bool quiet;
	bool trace_wire;
	bool keeper;       /* a process of its own holds the books while the daemon is down */
	int ready_fd;      /* -1 = none */
	uint64_t keep_s;   /* how long the past is kept */
	uint64_t size_max; /* bytes of the database */
	uint32_t metrics_processes;
	uint32_t scan_s; /* seconds between two looks at /proc */
};

#define CONFIG_NULL ((struct config){.ready_fd = -1})

/* Outcomes beside 0 and a negative errno. config_exit_code() tells what to exit with. */
enum config_outcome {
	CONFIG_DONE = 1,  /* help, version or a check was asked for and printed */
	CONFIG_WRONG = 2, /* file or environment; what is wrong was told on @errors */
	CONFIG_USAGE = 3, /* likewise the command line */
};

/* Fills @config, which config_deinit() then takes apart in any case. */
int config_parse(struct config *config, int argc, char **argv, FILE *output, FILE *errors);
void config_deinit(struct config *config);

/* For a result of config_parse() that is not 0. */
int config_exit_code(int result);

/* The defaults, as far as they depend on nothing. 0 or -ENOMEM. */
int config_init(struct config *config);

/* The text of a configuration file into @config: 0, CONFIG_WRONG or a negative errno. */
int config_parse_text(struct config *config, const char *name, const char *text, size_t length,
		      FILE *errors);

/* Writes all settings as a configuration file that means the same. */
void config_print(const struct config *config, FILE *output);

/*
 * Makes the folder of the native socket (open to everybody) and the state folder (closed), with their
 * parents, where they are missing. 0, or a negative errno with the path in @ret_path, which is the
 * config's.
 */
int config_make_folders(const struct config *config, const char **ret_path);
