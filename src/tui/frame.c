/* SPDX-License-Identifier: Apache-2.0 */

/* Draws everything around the views. Keys are in frame-keys.c. */

#include "tui/frame.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/amount.h"
#include "model/snapshot.h"
#include "tui/pane.h"

#define FRAME_HEAD 2u /* rows above the view */
#define FRAME_FOOT 1u

static void frame_draw_tabs(const struct model *model, struct grid *grid)
{
	unsigned int column = 0;

	grid_restyle(grid, 0, 0, grid->columns, GRID_BAR);
	for (unsigned int i = 0; i < MODEL_VIEWS; i++) {
		enum grid_style style = i == model->view ? GRID_TAB : GRID_BAR;
		char text[64];

		snprintf(text, sizeof(text), " %u %s ", i + 1, pane_of((enum model_view)i)->name);
		column += grid_text(grid, 0, column, grid->columns - column, style, text);
	}
	if (grid->columns >= column + 14)
		grid_right(grid, 0, column, grid->columns - column, GRID_BAR, "ttmem top ");
}

/* The moment that is shown; another one was asked for if it is being read. */
static void frame_moment(const struct model *model, char *ret_text, size_t size)
{
	const struct model_recording *recording = model->recording;
	uint64_t shown = model_snapshot(model)->time_ns;
	double length = (double)(recording->end_ns - recording->start_ns) / 1e9;

	snprintf(ret_text, size, "%s%.3f of %.3f s", shown == model->at_ns ? "" : "reading...  ",
		 (double)(int64_t)(model->at_ns - recording->start_ns) / 1e9, length);
}

/* The right end of the second line. Return: its first column. */
static unsigned int frame_draw_state(const struct model *model, struct grid *grid)
{
	const struct snapshot *snapshot = model_snapshot(model);
	time_t seconds = (time_t)(snapshot->time_ns / NS_PER_S);
	const char *daemon = model->totals->daemon == POLLER_DAEMON_HELPS ? "ttmemd" : "no ttmemd";
	char when[16] = "", text[192], notes[48] = "", moment[64];
	struct tm local;
	size_t width;

	if (localtime_r(&seconds, &local))
		strftime(when, sizeof(when), "%T", &local);
	if (snapshot->note_count)
		snprintf(notes, sizeof(notes), "%zu note%s (n)  ", snapshot->note_count,
			 snapshot->note_count == 1 ? "" : "s");
	if (model->recording)
		frame_moment(model, moment, sizeof(moment));
	snprintf(text, sizeof(text), "%s%s%s  %s", model->paused ? "PAUSED  " : "", notes,
		 model->recording ? moment : daemon, when);
	width = strlen(text) + 1;
	if (width + 1 >= grid->columns)
		return grid->columns;
	grid_text(grid, 1, grid->columns - (unsigned int)width, (unsigned int)width,
		  model->paused ? GRID_NOTICE : GRID_FAINT, text);
	return grid->columns - (unsigned int)width;
}

static void frame_draw_sums(const struct model *model, struct grid *grid)
{
	const struct snapshot *snapshot = model_snapshot(model);
	struct snapshot_memory all = {0};
	size_t devices = 0, processes = 0;
	char text[160], number[TEXT_NUMBER_SIZE], buffers[TEXT_NUMBER_SIZE];
	unsigned int end;

	if (!snapshot) {
		grid_text(grid, 1, 1, grid->columns - 1, GRID_FAINT, "looking for processes...");
		return;
	}
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		struct snapshot_memory amount =
			amount_of_process(process, AMOUNT_ANYWHERE, AMOUNT_ALL);

		if (!process->alive)
			continue;
		processes++;
		snapshot_add_memory(&all, &amount);
	}
	for (size_t i = 0; i < snapshot->device_count; i++)
		devices += model_shows_device(model, &snapshot->devices[i]);
	snprintf(text, sizeof(text), "%s%s, %zu process%s, %zu device%s", amount_text(&all, number),
		 amount_buffers(&all, buffers), processes, processes == 1 ? "" : "es", devices,
		 devices == 1 ? "" : "s");
	end = frame_draw_state(model, grid);
	if (end > 2)
		grid_text(grid, 1, 1, end - 2, GRID_STRONG, text);
}

/* The last line: the filter being typed, else a notice, else the keys. */
static void frame_draw_foot(const struct model *model, struct grid *grid)
{
	const struct list *list = &model->lists[model->view];
	unsigned int row = grid->rows - 1;
	char text[256];

	grid_restyle(grid, row, 0, grid->columns, GRID_BAR);
	if (model->typing) {
		unsigned int end;

		snprintf(text, sizeof(text), " filter: %s", list->filter);
		end = grid_text(grid, row, 0, grid->columns, GRID_BAR, text);
		grid_put(grid, row, end, GRID_TAB, '_');
		if (grid->columns > end + 32)
			grid_right(grid, row, end + 1, grid->columns - end - 1, GRID_BAR,
				   "Enter:keep  Esc:drop ");
		return;
	}
	if (model->kill.asks) {
		snprintf(text, sizeof(text), " End %s?  t: SIGTERM  9: SIGKILL  any other key: no",
			 model->kill.name);
		grid_restyle(grid, row, 0, grid->columns, GRID_NOTICE);
		grid_text(grid, row, 0, grid->columns, GRID_NOTICE, text);
		return;
	}
	if (*model->notice && model->now_ns < model->notice_until_ns) {
		snprintf(text, sizeof(text), " %.250s", model->notice);
		grid_restyle(grid, row, 0, grid->columns, model->notice_style);
		grid_text(grid, row, 0, grid->columns, model->notice_style, text);
		return;
	}
	snprintf(text, sizeof(text), " %s %s s:save ?:help q:quit", pane_of(model->view)->keys,
		 model->recording ? "Left/Right:time p:peak i:incident" : "p:pause");
	grid_text(grid, row, 0, grid->columns, GRID_BAR, text);
}

/* How many bytes of @text fit on one line: up to a blank, if there is one. */
static size_t frame_line_length(const char *text, size_t width)
{
	size_t length = strlen(text), at = width;

	if (length <= width)
		return length;
	while (at > 0 && text[at] != ' ')
		at--;
	if (at > 0)
		return at;
	/* Not within a character: its later bytes are 10xxxxxx. */
	for (at = width; at > 1 && ((unsigned char)text[at] & 0xc0) == 0x80; at--)
		;
	return at;
}

/* Draws @text from @row on; without a grid it only counts. Return: rows. */
static unsigned int frame_wrap(struct grid *grid, const struct grid_area *area, const char *text)
{
	char line[GRID_SIDE_MAX + 1];
	unsigned int rows = 0;

	do {
		size_t length = frame_line_length(text, area->columns);

		if (grid && rows < area->rows) {
			memcpy(line, text, length);
			line[length] = '\0';
			grid_text(grid, area->row + rows, area->column, area->columns, GRID_BAR,
				  line);
		}
		text += length + (text[length] == ' ');
		rows++;
	} while (*text);
	return rows;
}

/* Drawn over everything else. */
static void frame_draw_box(struct grid *grid, const char *const *lines, size_t count)
{
	unsigned int width = grid->columns > 100 ? 92 : grid->columns - 8;
	unsigned int column = (grid->columns - width) / 2, height = 2;
	struct grid_area area = {0, column + 2, 0, width - 4};

	for (size_t i = 0; i < count; i++)
		height += frame_wrap(NULL, &area, lines[i]);
	height = (unsigned int)bits_min(height, grid->rows - 2);
	area.row = (grid->rows - height) / 2;
	for (unsigned int i = 0; i < height; i++) {
		for (unsigned int k = 0; k < width; k++)
			grid_put(grid, area.row + i, column + k, GRID_BAR, ' ');
	}
	area.row++;
	area.rows = height - 2;
	for (size_t i = 0; i < count && area.rows > 0; i++) {
		unsigned int rows =
			(unsigned int)bits_min(frame_wrap(grid, &area, lines[i]), area.rows);

		area.row += rows;
		area.rows -= rows;
	}
}

/* What other keys do in a recording; the rest is as ever. */
static void frame_draw_travel_help(struct grid *grid)
{
	static const char *const lines[] = {
		"Left, Right       earlier, later: a hundredth of the recording",
		"Home, End         its start, its end",
		"p                 the moment when most was held",
		"i                 the next incident",
		"1 to 6, Tab       the views; also a click on its name",
		"Up, Down, j, k    choose; PgUp, PgDn; wheel, click",
		"Enter, Esc        deeper: device, processes, buffers, stack; back",
		"< >  r            sort by another column, the other way round",
		"/                 filter: letters that a row must have",
		"t                 charts over 30, 60, 120, 300 seconds before the moment",
		"n                 notes: what could not be read, and why",
		"a                 also ended processes and closed devices",
		"s                 save what is shown as JSON in this folder",
		"?                 this; any key closes it",
		"q                 quit",
	};

	frame_draw_box(grid, lines, ARRAY_SIZE(lines));
}

static void frame_draw_help(struct grid *grid)
{
	static const char *const lines[] = {
		"1 to 6            the views; also a click on its name",
		"Tab               the next view",
		"Up, Down, j, k    choose; PgUp, PgDn, Home, End; wheel, click",
		"Left, Right       between devices; in lists the column to sort by",
		"Enter             deeper: device, processes, buffers, stack",
		"Esc               back: folds, drops the filter, last view",
		"< >  r            sort by another column, the other way round;",
		"                  also a click on its title",
		"/                 filter: letters that a row must have",
		"t                 charts over 30, 60, 120, 300 seconds",
		"n                 notes: what could not be read, and why",
		"a                 also ended processes and closed devices",
		"T                 processes as a tree: below those that started them",
		"K                 end the selected process; asks first",
		"p                 pause; charts go on in the background",
		"s                 save what is shown as JSON in this folder",
		"W                 save view, order and charts for the next start",
		"?                 this; any key closes it",
		"q                 quit",
		"1R                device 1: a remote chip, without a node of its own",
	};

	frame_draw_box(grid, lines, ARRAY_SIZE(lines));
}

static void frame_draw_notes(const struct model *model, struct grid *grid)
{
	static const char *const none[] = {"no notes: everything could be read"};
	const struct snapshot *snapshot = model_snapshot(model);

	if (snapshot && snapshot->note_count)
		frame_draw_box(grid, snapshot->notes, snapshot->note_count);
	else
		frame_draw_box(grid, none, 1);
}

void frame_draw(struct model *model, struct grid *grid)
{
	struct grid_area area = {FRAME_HEAD, 0, 0, grid->columns};

	if (grid->rows < FRAME_ROWS_MIN || grid->columns < FRAME_COLUMNS_MIN) {
		grid_text(grid, 0, 0, grid->columns, GRID_PLAIN, "too small; q quits");
		return;
	}
	area.rows = grid->rows - FRAME_HEAD - FRAME_FOOT;
	frame_draw_tabs(model, grid);
	frame_draw_sums(model, grid);
	if (model_snapshot(model))
		pane_of(model->view)->draw(model, grid, &area);
	frame_draw_foot(model, grid);
	if (model->help && model->recording)
		frame_draw_travel_help(grid);
	else if (model->help)
		frame_draw_help(grid);
	if (model->notes)
		frame_draw_notes(model, grid);
}
