/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of a process in /proc tell of the driver's nodes: its descriptors and its mappings.
 * All of it is bounded for one snapshot, because anybody can have many of both.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

struct pid_cache;

#define NODES_NUMBERS_MAX 64u /* nodes of one process, and as many that were removed */
#define NODES_PATH_MAX 512u

struct nodes_reader {
	struct pid_cache *pid_cache;
	struct snapshot *snapshot;
	char folder[NODES_PATH_MAX]; /* with the nodes; ends with a slash */
	size_t links;                /* that were read */
	size_t maps;                 /* bytes of lists of mappings that were read */
};

/* The nodes of one process. */
struct nodes_found {
	uint32_t pid;
	bool is_known;
	bool open[SNAPSHOT_CARDS_MAX]; /* by card */
	uint32_t opened[NODES_NUMBERS_MAX], removed[NODES_NUMBERS_MAX];
	size_t opened_count, removed_count;
};

/* False: the folder's name is too long. */
bool nodes_reader_begin(struct nodes_reader *reader, struct pid_cache *pid_cache,
			struct snapshot *snapshot);

/* The descriptors whose names are those of nodes. */
void nodes_read(struct nodes_reader *reader, uint32_t pid, struct nodes_found *ret_found);

/*
 * Adds what names do not tell: descriptors of nodes that were made elsewhere, by their device numbers,
 * and mappings, which hold a card after its descriptor was closed. Only for a process that the driver
 * lists, because it looks at every descriptor. Makes it unknown what cannot be read.
 */
void nodes_read_closely(struct nodes_reader *reader, struct nodes_found *found);

/* The version of UMD that it has mapped, see numbering.h; 0 = not known. */
uint32_t nodes_read_umd(struct nodes_reader *reader, uint32_t pid);
