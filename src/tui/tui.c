/* SPDX-License-Identifier: Apache-2.0 */

/* The main loop: waits for keys and new readings, changes the model, draws. */

#include "tui/tui.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/user-file.h"
#include "tui/frame.h"
#include "tui/model.h"
#include "tui/save.h"
#include "tui/settings.h"
#include "tui/terminal.h"

/* Lets a notice disappear without a key, and a signal between two waits be noticed. */
#define TUI_WAIT_MS 1000

struct tui {
	const struct tui_options *options;
	struct model model;
	struct grid grid;
	struct poller *poller;
};

static void tui_draw(struct tui *tui)
{
	unsigned int rows, columns;

	terminal_size(&rows, &columns);
	tui->grid.ascii = tui->options->ascii || !terminal_is_utf8();
	if (grid_begin(&tui->grid, rows, columns) < 0)
		return; /* the old picture stays */
	frame_draw(&tui->model, &tui->grid);
	terminal_show(&tui->grid);
}

static void tui_save(struct tui *tui)
{
	char name[SAVE_NAME_SIZE];
	int r = save_snapshot(&tui->model, name);

	tui->model.wants_save = false;
	if (r < 0)
		model_notice(&tui->model, GRID_NOTICE, "cannot be saved here: %s", strerror(-r));
	else
		model_notice(&tui->model, GRID_BAR, "saved as %s", name);
}

static void tui_save_settings(struct tui *tui)
{
	char path[PATH_MAX];
	int r = settings_save(&tui->model);

	tui->model.wants_settings = false;
	if (r < 0)
		model_notice(&tui->model, GRID_NOTICE, "settings cannot be saved: %s",
			     user_file_error(r));
	else
		model_notice(&tui->model, GRID_BAR, "settings saved in %.200s",
			     settings_path(path, sizeof(path)));
}

/* Reads who started whom, if that is shown and not known yet. */
static void tui_grow_tree(struct tui *tui)
{
	struct model *model = &tui->model;

	if (!model->tree.is_on || model->tree.parents || !model_snapshot(model) || model->recording)
		return;
	tree_read(&model->tree, model_snapshot(model), tui->options->parent_of,
		  tui->options->context);
	model_update(model);
}

/* Return: whether the terminal is gone. */
static bool tui_wait(struct tui *tui)
{
	struct pollfd waits[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = poller_fd(tui->poller), .events = POLLIN},
	};
	int n = poll(waits, 2, TUI_WAIT_MS);

	return n > 0 && waits[0].revents & (POLLHUP | POLLERR | POLLNVAL);
}

/* Takes new readings and keys. */
static void tui_take(struct tui *tui)
{
	struct poller_totals *totals = poller_take_totals(tui->poller);
	struct poller_details *details = poller_take_details(tui->poller);
	struct poller_wish wish;
	struct keys_event event;

	tui->model.now_ns = clock_ns(CLOCK_MONOTONIC);
	if (totals)
		model_totals_consume(&tui->model, totals);
	if (details)
		model_details_consume(&tui->model, details);
	for (;;) {
		terminal_key(&event);
		if (event.key == KEYS_NONE)
			break;
		frame_key(&tui->model, &event);
	}
	if (tui->model.wants_save)
		tui_save(tui);
	if (tui->model.wants_settings)
		tui_save_settings(tui);
	if (tui->model.kill.wants)
		kill_result(&tui->model,
			    tui->options->send(tui->options->context, tui->model.kill.process,
					       tui->model.kill.signal));
	tui_grow_tree(tui);
	wish = model_wish(&tui->model);
	poller_wish(tui->poller, &wish);
}

static void tui_loop(struct tui *tui)
{
	tui_draw(tui);
	while (!tui->model.wants_quit && !tui->options->is_stopped()) {
		if (tui_wait(tui))
			break;
		tui_take(tui);
		tui_draw(tui);
	}
}

int tui_run(const struct tui_options *options, const struct poller_feed feeds[2])
{
	struct tui tui = {.options = options};
	int r = terminal_open(options->colours);

	if (r != 0) {
		feeds[0].free(feeds[0].context);
		feeds[1].free(feeds[1].context);
		return r;
	}
	model_init(&tui.model);
	tui.model.filter = options->filter;
	tui.model.all = options->all;
	(void)settings_load(&tui.model); /* without them, it starts as ever */
	if (options->recording)
		model_show_recording(&tui.model, options->recording, options->at_ns);
	r = poller_new(&tui.poller, options->refresh_ms, &options->filter, feeds);
	if (r == 0)
		tui_loop(&tui);
	/* First: a reader that hangs must not keep the user waiting, too. */
	terminal_close();
	poller_free(tui.poller);
	model_deinit(&tui.model);
	grid_deinit(&tui.grid);
	return r;
}
