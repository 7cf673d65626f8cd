/* SPDX-License-Identifier: Apache-2.0 */

/* Shared by the views. */

#include "tui/pane.h"

#include <inttypes.h>
#include <stdio.h>

#include "model/cards/condition.h"
#include "model/snapshot.h"

const struct pane *pane_of(enum model_view view)
{
	static const struct pane *const panes[] = {
		[MODEL_DEVICES] = &pane_devices, [MODEL_PROCESSES] = &pane_processes,
		[MODEL_BUFFERS] = &pane_buffers, [MODEL_SITES] = &pane_sites,
		[MODEL_PAST] = &pane_past,       [MODEL_TELEMETRY] = &pane_telemetry,
	};

	return panes[view];
}

void pane_draw_list(struct model *model, struct grid *grid, const struct grid_area *area,
		    const char *title)
{
	struct list *list = &model->lists[model->view];
	struct grid_area rest = *area;
	unsigned int at;

	if (area->rows < 3)
		return;
	at = area->column + 1 +
	     grid_text(grid, area->row, area->column + 1, area->columns - 1, GRID_STRONG, title);
	if (*list->filter && !model->typing) {
		char text[LIST_FILTER_SIZE + 16];

		snprintf(text, sizeof(text), "  filter: %s", list->filter);
		grid_text(grid, area->row, at, area->columns - at, GRID_NOTICE, text);
	}
	rest.row++;
	rest.rows--;
	list_draw(list, pane_of(model->view)->rows, model, grid, &rest);
}

void pane_device_number(const struct snapshot_device *device, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu32 "%s", device->device, device->remote ? "R" : "");
}

void pane_device_card(const struct snapshot_device *device, char *text, size_t size)
{
	const char *state = condition_words(device->condition.state);

	if (state) {
		snprintf(text, size, "%s %s", device->card ? device->card : "card", state);
		return;
	}
	if (!device->card && !device->arch)
		snprintf(text, size, "unknown card");
	else
		snprintf(text, size, "%s%s%s", device->card ? device->card : "",
			 device->card && device->arch ? " " : "", device->arch ? device->arch : "");
}
