/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of the configuration: the table of settings and the default locations. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct config;
struct config_key;

/* Parses and prints one kind of value. @target: the member of struct config. */
struct config_kind {
	/* 0, -EINVAL (nothing was changed) or -ENOMEM. */
	int (*parse)(const struct config_key *key, void *target, const char *text);
	void (*print)(const void *target, FILE *output);
	bool (*is_set)(const void *target); /* NULL: always set */
};

#define CONFIG_MINUTE UINT64_C(60)
#define CONFIG_DAY (UINT64_C(24) * 60 * CONFIG_MINUTE)

/* Numbers: see config-numbers.c. */
extern const struct config_kind config_kind_time;
extern const struct config_kind config_kind_time32;
extern const struct config_kind config_kind_size;
extern const struct config_kind config_kind_flight;
extern const struct config_kind config_kind_count;
extern const struct config_kind config_kind_fd;

/* One setting. */
struct config_key {
	const char *name;
	const char *argument; /* the name of the value in --help */
	const char *expects;  /* "... expects EXPECTS" */
	const char *help;
	const struct config_kind *kind;
	size_t offset;     /* in struct config */
	uint64_t min, max; /* of numbers; for texts, max is the length */
	char letter;       /* 0 = no short form */
	bool is_switch;    /* on the command line the name alone means "yes" */
};

extern const struct config_key config_keys[];
extern const size_t config_keys_count;

/* NULL if there is none of this name. */
const struct config_key *config_keys_find(const char *name, size_t length);

/* The setting that was probably meant, or NULL. */
const struct config_key *config_keys_guess(const char *name);

/* 0, CONFIG_WRONG (nothing was changed) or -ENOMEM. */
int config_keys_set(struct config *config, const struct config_key *key, const char *text);

/* Writes "name = value", or a comment if it is not set. */
void config_keys_print(const struct config *config, const struct config_key *key, FILE *output);

/* System-wide locations; tests use others. */
struct config_places {
	const char *run;   /* "/run/ttmem" */
	const char *state; /* "/var/lib/ttmem" */
	const char *file;  /* "/etc/ttmem/ttmemd.conf" */
};

extern const struct config_places config_places_usual;

/* Fills in the paths that are not set. 0, CONFIG_WRONG or -ENOMEM. */
int config_places_choose(struct config *config, const struct config_places *places, FILE *errors);

/* Like config_parse(). */
int config_parse_at(struct config *config, const struct config_places *places, int argc,
		    char **argv, FILE *streams[2]);
