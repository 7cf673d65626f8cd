/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Drawing the tables of "ttmem smi". Text combines types in the same memory: DRAM with TRACE, L1
 * with L1_SMALL, CB and KERNEL; JSON and CSV never do.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct snapshot_memory;
struct by_user;
struct filter;
struct smi_style;
struct snapshot;
struct snapshot_device;
struct snapshot_process;
struct table;

struct smi_picture {
	FILE *out;
	const struct snapshot *snapshot;
	const struct filter *filter;
	const struct smi_style *style;
	unsigned int width; /* of the whole picture */
	bool is_wide;       /* there is room for optional columns */
	bool has_sensors;   /* and a card has sensors, which get one */
	unsigned int size;  /* columns of a memory size */
};

/* A rule across the whole width, and a line in the box; @text is already escaped. */
void smi_picture_rule(const struct smi_picture *picture);
void smi_picture_across(const struct smi_picture *picture, const char *text);

/* Cells of exactly @width columns, however many bytes their characters take. */
void smi_picture_right(const struct smi_picture *picture, const char *text, unsigned int width);
void smi_picture_left(const struct smi_picture *picture, const char *text, unsigned int width);
void smi_picture_size(const struct smi_picture *picture, const struct snapshot_memory *amount,
		      unsigned int width);

/* The same as a cell of a table. */
void smi_picture_cell(const struct smi_picture *picture, struct table *table,
		      const struct snapshot_memory *amount);

/* "", or a sign for "at least" or "at most". */
const char *smi_picture_bound(const struct smi_picture *picture, uint32_t bound);

/* Green, yellow or red, depending on @share. */
void smi_picture_bar(const struct smi_picture *picture, double share, unsigned int width);

/* Whether to show it. */
bool smi_picture_shows_device(const struct smi_picture *picture,
			      const struct snapshot_device *device);
bool smi_picture_shows_process(const struct smi_picture *picture,
			       const struct snapshot_process *process);

/* The two tables; the second one, or that of users instead, is begun and the caller ends it. */
void smi_devices(const struct smi_picture *picture);
void smi_processes(const struct smi_picture *picture, struct table *table);
void smi_users(const struct smi_picture *picture, const struct by_user *list, struct table *table);

/* Whether one of the devices shown has sensors, or a state to be told instead. */
bool smi_devices_have_sensors(const struct smi_picture *picture);
