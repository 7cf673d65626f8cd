/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The settings of ttmemd: from its configuration file, then the environment, then the command line;
 * later ones win. Every setting is a long option and, without the dashes, a key of the file; one
 * table (config-keys.c) lists them all. An error in the file is reported with file and line.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_NONE "none"

/* What the flight recorder keeps; a size of 0 = it is off. */
struct config_flight {
	uint64_t time_s;
	uint64_t size;
};

#define CONFIG_BYTES_MAX (UINT32_C(64) << 10) /* of a configuration file */

struct config {
	/* All texts are owned by the config; NULL = not set and no default. */
	char *socket;           /* native socket, never NULL */
	char *legacy_socket;    /* "none" = not served */
	char *http;             /* "none" = not served */
	char *state;            /* folder */
	char *log;              /* log file; NULL = standard output */
	char *on_incident;      /* shell command */
	char *http_hosts;       /* NULL = none */
	char *skip_frames;      /* likewise */
	char *fleet;            /* other machines; NULL = none */
	char *fleet_prometheus; /* which knows of more of them; likewise */
	char *otlp;             /* NULL = no push */
	uint32_t otlp_interval_s;
	char *token_file; /* default: "http-token" in the state folder */
	char *group;      /* whose members see everything: "ttmem" */
	bool http_details;
	bool strict_close; /* what was live when its device was closed is an incident */
	bool is_old_name;  /* called by the name of an old server, which it then is */
	bool log_events;
	bool log_history; /* with the history of each buffer; log_events too */
	bool decimal_ids;
	bool quiet;
	bool trace_wire;
	bool keeper;            /* a separate process holds the books while the daemon is down */
	int ready_fd;           /* -1 = none */
	uint64_t keep_s;        /* how long history is kept */
	uint64_t size_max;      /* bytes of the database */
	uint64_t legacy_memory; /* bytes of old clients' books */
	struct config_flight flight;
	uint32_t metrics_processes;
	uint32_t scan_s; /* seconds between two scans of /proc */
};

#define CONFIG_NULL ((struct config){.ready_fd = -1})

/* Outcomes besides 0 and a negative errno. config_exit_code() maps them to exit codes. */
enum config_outcome {
	CONFIG_DONE = 1,  /* help, version or the settings were requested and printed */
	CONFIG_WRONG = 2, /* error in the file or the environment, reported on @errors */
	CONFIG_USAGE = 3, /* error on the command line, reported on @errors */
};

/* Fills @config; call config_deinit() whatever is returned. */
int config_parse(struct config *config, int argc, char **argv, FILE *output, FILE *errors);
void config_deinit(struct config *config);

/* For a result of config_parse() that is not 0. */
int config_exit_code(int result);

/* Sets the defaults that depend on nothing else. 0 or -ENOMEM. */
int config_init(struct config *config);

/* Parses the text of a configuration file into @config: 0, CONFIG_WRONG or a negative errno. */
int config_parse_text(struct config *config, const char *name, const char *text, size_t length,
		      FILE *errors);

/* Writes all settings as an equivalent configuration file. */
void config_print(const struct config *config, FILE *output);

/*
 * Makes the folder of the native socket (public), or the state folder (private), with missing
 * parents. 0 or a negative errno.
 */
int config_make_socket_folder(const struct config *config);
int config_make_state_folder(const struct config *config);
