/* SPDX-License-Identifier: Apache-2.0 */

/* Saves what is shown. */

#include "tui/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "answers/buffers.h"
#include "answers/document.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "model/snapshot.h"
#include "tui/model.h"

#define SAVE_TRIES 100u /* several in one second are numbered */

static int save_open(const char *what, uint64_t time_ns, char ret_name[SAVE_NAME_SIZE])
{
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	char when[32] = "", number[8] = "";
	struct tm local;

	if (localtime_r(&seconds, &local))
		strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &local);
	for (unsigned int i = 1; i <= SAVE_TRIES; i++) {
		int fd;

		if (i > 1)
			snprintf(number, sizeof(number), "-%u", i);
		snprintf(ret_name, SAVE_NAME_SIZE, "ttmem-%s-%s%s.json", what, when, number);
		fd = open(ret_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

int save_snapshot(const struct model *model, char ret_name[SAVE_NAME_SIZE])
{
	const struct snapshot *snapshot = model_snapshot(model);
	const struct poller_details *details = NULL;
	FILE *out;
	struct emit json;
	int fd, r = 0;

	if (!snapshot)
		return -EAGAIN;
	if (model->view == MODEL_BUFFERS)
		details = model_details(model, POLLER_BUFFERS);
	if (model->view == MODEL_SITES)
		details = model_details(model, POLLER_SITES);
	fd = save_open(details ? "buffers" : "smi", snapshot->time_ns, ret_name);
	if (fd < 0)
		return fd;
	out = fdopen(fd, "w");
	if (!out) {
		(void)close(fd); /* nothing was written */
		return -ENOMEM;
	}
	json = EMIT_INIT(out);
	if (details && details->sites.groups)
		buffers_put_groups(&json, details->snapshot, GROUP_SITE, &details->sites);
	else if (details)
		buffers_put(&json, details->snapshot);
	else
		document_smi(&json, snapshot, &model->filter, NULL);
	if (ferror(out))
		r = -EIO;
	if (fclose(out) != 0 && r == 0)
		r = -errno;
	return r;
}
