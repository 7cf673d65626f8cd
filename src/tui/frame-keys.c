/* SPDX-License-Identifier: Apache-2.0 */

/* What each key does. */

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "tui/frame.h"
#include "tui/pane.h"

#define FRAME_STEPS 100u /* of a key, from the start of a recording to its end */

static void frame_enter(struct model *model)
{
	const struct pane *pane = pane_of(model->view);
	size_t item;

	if (pane->enter && list_chosen(&model->lists[model->view], &item))
		pane->enter(model, item);
}

/* Folds the row, clears the filter, or goes back: one of them at a time. */
static void frame_escape(struct model *model)
{
	struct list *list = &model->lists[model->view];

	if (list_fold(list))
		return;
	if (*list->filter) {
		list->filter[0] = '\0';
		model_update(model);
		return;
	}
	if (model_go_back(model) && model->view != MODEL_PROCESSES && model->view != MODEL_BUFFERS)
		model->has_device = false;
}

static void frame_type(struct model *model, const struct keys_event *event)
{
	struct list *list = &model->lists[model->view];
	size_t length = strlen(list->filter);

	if (event->key == KEYS_ESCAPE)
		list->filter[0] = '\0';
	if (event->key == KEYS_ENTER || event->key == KEYS_ESCAPE)
		model->typing = false;
	else if (event->key == KEYS_BACKSPACE && length > 0) {
		/* A whole character: its last bytes are 10xxxxxx. */
		do
			length--;
		while (length > 0 && ((unsigned char)list->filter[length] & 0xc0) == 0x80);
		list->filter[length] = '\0';
	} else if (event->key >= ' ' && event->key < 0x7f && length + 1 < LIST_FILTER_SIZE) {
		list->filter[length] = (char)event->key;
		list->filter[length + 1] = '\0';
	}
	model_update(model);
}

static void frame_view(struct model *model, enum model_view view)
{
	/* A view selected by number shows everything. */
	model->has_device = false;
	if (view == model->view)
		model_update(model);
	model_go(model, view);
}

/* A click on the first line, where frame_draw_tabs() has drawn the tabs. */
static void frame_click_tab(struct model *model, unsigned int at)
{
	unsigned int column = 0;

	for (unsigned int i = 0; i < MODEL_VIEWS; i++) {
		column += (unsigned int)strlen(pane_of((enum model_view)i)->name) + 4;
		if (at < column) {
			frame_view(model, (enum model_view)i);
			return;
		}
	}
}

static void frame_longer(struct model *model)
{
	static const uint32_t seconds[] = {30, 60, 120, SERIES_SECONDS};
	size_t i = 0;

	while (i < ARRAY_SIZE(seconds) && seconds[i] <= model->seconds)
		i++;
	model->seconds = seconds[i % ARRAY_SIZE(seconds)];
	model_notice(model, GRID_BAR, "charts over %u seconds", (unsigned int)model->seconds);
}

static void frame_tree(struct model *model)
{
	if (model->recording) {
		model_notice(model, GRID_BAR, "a recording does not know who started whom");
		return;
	}
	model->tree.is_on = !model->tree.is_on;
	model_notice(model, GRID_BAR, "%s",
		     model->tree.is_on ? "processes below those that started them"
				       : "processes without their tree");
	model_update(model);
}

static void frame_next_incident(struct model *model)
{
	const struct model_recording *recording = model->recording;

	for (size_t i = 0; i < recording->incident_count; i++) {
		if (recording->incidents[i] > model->at_ns) {
			model->at_ns = recording->incidents[i];
			return;
		}
	}
	model_notice(model, GRID_BAR, "there is no incident after this moment");
}

/* Keys that go to another moment of a recording. Return: whether it was one. */
static bool frame_travel(struct model *model, uint32_t key)
{
	const struct model_recording *recording = model->recording;
	uint64_t step;

	if (!recording)
		return false;
	step = bits_max((recording->end_ns - recording->start_ns) / FRAME_STEPS, UINT64_C(1));
	switch (key) {
	case KEYS_LEFT:
		model->at_ns -= bits_min(step, model->at_ns - recording->start_ns);
		return true;
	case KEYS_RIGHT:
		model->at_ns += bits_min(step, recording->end_ns - model->at_ns);
		return true;
	case KEYS_HOME:
		model->at_ns = recording->start_ns;
		return true;
	case KEYS_END:
		model->at_ns = recording->end_ns;
		return true;
	case 'p':
		model->at_ns = recording->peak_ns;
		return true;
	case 'i':
		frame_next_incident(model);
		return true;
	default:
		return key == ' '; /* nothing moves that could be paused */
	}
}

/* Keys with the same meaning in all views. Return: whether it was one. */
static bool frame_common(struct model *model, uint32_t key)
{
	switch (key) {
	case 'q':
		model->wants_quit = true;
		return true;
	case 'p':
	case ' ':
		model->paused = !model->paused;
		return true;
	case 's':
		model->wants_save = true;
		return true;
	case 't':
		frame_longer(model);
		return true;
	case 'a':
		model->all = !model->all;
		model_notice(model, GRID_BAR, "%s",
			     model->all ? "with ended processes and closed devices"
					: "living processes and open devices only");
		model_update(model);
		return true;
	case 'K':
		kill_request(model);
		return true;
	case 'T':
		frame_tree(model);
		return true;
	case 'W':
		model->wants_settings = true;
		return true;
	case '?':
	case 'h':
		model->help = true;
		return true;
	case 'n':
		model->notes = true;
		return true;
	case '/':
		model->typing = true;
		return true;
	case '\t':
		frame_view(model, (enum model_view)((model->view + 1) % MODEL_VIEWS));
		return true;
	case KEYS_ESCAPE:
		frame_escape(model);
		return true;
	case KEYS_ENTER:
	case '\n':
		frame_enter(model);
		return true;
	default:
		return false;
	}
}

static void frame_list(struct model *model, const struct keys_event *event)
{
	struct keys_event meant = *event;
	bool is_devices = model->view == MODEL_DEVICES;
	int r;

	if (event->key == KEYS_LEFT)
		meant.key = is_devices ? KEYS_UP : '<';
	if (event->key == KEYS_RIGHT)
		meant.key = is_devices ? KEYS_DOWN : '>';
	r = list_key(&model->lists[model->view], pane_of(model->view)->rows, model, &meant);
	if (r == LIST_SORTED)
		model_update(model);
	if (r == LIST_ENTERED)
		frame_enter(model);
}

void frame_key(struct model *model, const struct keys_event *event)
{
	if (event->key == KEYS_RESIZE || event->key == KEYS_NONE)
		return;
	if (model->help || model->notes) {
		model->help = model->notes = false;
		return;
	}
	if (model->kill.asks) {
		kill_answer(model, event->key);
		return;
	}
	if (model->typing && (event->key < KEYS_UP || event->key == KEYS_BACKSPACE)) {
		frame_type(model, event);
		return;
	}
	if (event->key == KEYS_CLICK && event->row == 0) {
		frame_click_tab(model, event->column);
		return;
	}
	if (event->key >= '1' && event->key < '1' + MODEL_VIEWS) {
		frame_view(model, (enum model_view)(event->key - '1'));
		return;
	}
	if (!frame_travel(model, event->key) && !frame_common(model, event->key))
		frame_list(model, event);
}
