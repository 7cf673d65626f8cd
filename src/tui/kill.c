/* SPDX-License-Identifier: Apache-2.0 */

/* Where ending a process stands. */

#include "tui/kill.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "model/snapshot.h"
#include "tui/model.h"

/* In the list of processes the selected one, elsewhere the one whose buffers are shown. */
static const struct snapshot_process *kill_selected(const struct model *model)
{
	const struct snapshot *snapshot = model_snapshot(model);
	size_t item;

	if (model->view == MODEL_BUFFERS)
		return model_process(model);
	if (model->view != MODEL_PROCESSES || !snapshot ||
	    !list_chosen(&model->lists[MODEL_PROCESSES], &item))
		return NULL;
	return &snapshot->processes[item];
}

void kill_request(struct model *model)
{
	const struct snapshot_process *process = kill_selected(model);
	struct kill_state *state = &model->kill;

	if (model->recording) {
		model_notice(model, GRID_BAR, "a recording has no process to end");
	} else if (!process) {
		model_notice(model, GRID_BAR, "select a process first: view 2");
	} else if (!process->alive) {
		model_notice(model, GRID_BAR, "this process has already ended");
	} else {
		*state = (struct kill_state){.wants = true, .process = process->id};
		snprintf(state->name, sizeof(state->name), "%.40s[%" PRIu32 "] of %.32s",
			 process->comm, process->id.pid, process->user);
	}
}

static const char *kill_signal(int signal)
{
	return signal == SIGKILL ? "SIGKILL" : "SIGTERM";
}

void kill_result(struct model *model, int result)
{
	struct kill_state *state = &model->kill;

	state->wants = false;
	if (result == -EPERM) {
		model_notice(model, GRID_NOTICE, "you may not end %s", state->name);
	} else if (result == -ESRCH) {
		model_notice(model, GRID_NOTICE, "%s has already ended", state->name);
	} else if (result < 0) {
		model_notice(model, GRID_NOTICE, "%s cannot be ended: %s", state->name,
			     strerror(-result));
	} else if (state->signal == 0) {
		state->asks = true;
	} else {
		state->waits = true;
		state->sent_ns = model->now_ns;
		model_notice(model, GRID_NOTICE, "%s was sent to %s", kill_signal(state->signal),
			     state->name);
	}
}

void kill_answer(struct model *model, uint32_t key)
{
	struct kill_state *state = &model->kill;

	state->asks = false;
	/* Not k: who moves up with it and touches Shift would kill with the next key. */
	state->signal = key == 't' ? SIGTERM : key == '9' ? SIGKILL : 0;
	state->wants = state->signal != 0;
	if (!state->wants)
		model_notice(model, GRID_BAR, "%s goes on", state->name);
}

static bool kill_lives(const struct model *model)
{
	const struct snapshot *snapshot = model_snapshot(model);

	return snapshot && snapshot_find_living(snapshot, model->kill.process);
}

void kill_watch(struct model *model)
{
	struct kill_state *state = &model->kill;

	if (!state->waits)
		return;
	if (!kill_lives(model)) {
		state->waits = false;
		model_notice(model, GRID_NOTICE, "%s has ended", state->name);
	} else if (model->now_ns > state->sent_ns + KILL_PATIENCE_NS) {
		state->waits = false;
		model_notice(model, GRID_NOTICE, "%s has not ended%s", state->name,
			     state->signal == SIGKILL ? "" : " yet: K, then 9, sends SIGKILL");
	}
}
