/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The views, one file each: their rows, and what is drawn beside them. A view is constant;
 * everything that changes is in the model.
 */

#include <stdbool.h>
#include <stddef.h>

#include "model/snapshot-request.h"
#include "tui/model.h"

struct pane {
	const char *name; /* on its tab */
	const char *keys; /* its own keys beyond the common ones, for the last line */
	const struct list_rows *rows;
	size_t sort; /* initially */
	bool falling;
	size_t (*count)(const struct model *model);
	void (*draw)(struct model *model, struct grid *grid, const struct grid_area *area);
	/* Enter on the selected row @item. */
	void (*enter)(struct model *model, size_t item);
};

extern const struct pane pane_devices;
extern const struct pane pane_processes;
extern const struct pane pane_buffers;
extern const struct pane pane_sites;
extern const struct pane pane_past;
extern const struct pane pane_telemetry;

const struct pane *pane_of(enum model_view view);

/* Which buffers to read first, for the selected order. */
enum snapshot_order pane_buffers_order(const struct list *list);

/* For views that are only a list: the list, with a title line above it. */
void pane_draw_list(struct model *model, struct grid *grid, const struct grid_area *area,
		    const char *title);

/* The device's number as users know it ("3", "3R" for a remote one), and its card. */
void pane_device_number(const struct snapshot_device *device, char *text, size_t size);
void pane_device_card(const struct snapshot_device *device, char *text, size_t size);

/* Rows of devices, and the column with the number. */
const void *pane_devices_row(const void *context, size_t item, struct fields_room *room);
bool pane_devices_wants(const void *context, size_t item);
bool pane_devices_finds(const void *context, size_t item, const char *filter);
uint64_t pane_devices_key(const void *context, size_t item);
size_t pane_devices_count(const struct model *model);
const char *pane_devices_number(struct list_cell *cell);
