/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What ttmemd is told: by its configuration file, then by the environment, then by the command line,
 * the later ones winning. Every option of the command line is a key of the file. An unknown key is an
 * error that names file and line.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_NONE "none"

struct config {
	/* All texts are the config's; NULL = not set and no default. */
	char *socket;        /* native socket, never NULL */
	char *legacy_socket; /* "none" = not served */
	char *http;          /* "none" = not served */
	char *state;         /* folder */
	char *log;           /* file for what is said; NULL = standard output */
	char *on_incident;   /* shell command */
	char *token_file;    /* default: "http-token" in the state folder */
	char *group;         /* whose members see everything: "ttmem" */
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

/* Outcomes of config_parse() beside 0 and a negative errno. */
enum config_outcome {
	CONFIG_DONE = 1,  /* help or version was asked for and printed */
	CONFIG_WRONG = 2, /* and what is wrong was told on @errors */
};

/* Fills @config, which config_deinit() then takes apart in any case. */
int config_parse(struct config *config, int argc, char **argv, FILE *output, FILE *errors);
void config_deinit(struct config *config);

/* The text of a configuration file: 0, CONFIG_WRONG or a negative errno. For fuzzing, too. */
int config_parse_text(struct config *config, const char *name, const char *text, size_t length,
		      FILE *errors);
