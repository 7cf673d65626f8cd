/* SPDX-License-Identifier: Apache-2.0 */

/* Settings as text and in their file. */

#include "tui/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/files/user-file.h"
#include "base/text.h"
#include "tui/pane.h"

const char *settings_path(char *ret_path, size_t size)
{
	const char *config = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
	int length = -1;

	/* Relative paths are invalid there. */
	if (config && *config == '/')
		length = snprintf(ret_path, size, "%s/ttmem/top", config);
	else if (home && *home == '/')
		length = snprintf(ret_path, size, "%s/.config/ttmem/top", home);
	if (length < 0 || (size_t)length >= size)
		*ret_path = '\0';
	return ret_path;
}

/* "sort.2 DRAM falling" */
static void settings_parse_sort(struct model *model, const char *view, const char *column,
				const char *way)
{
	const struct list_rows *rows;
	struct list *list;
	uint64_t number;

	if (text_parse_u64(view, &number) < 0 || number < 1 || number > MODEL_VIEWS)
		return;
	rows = pane_of((enum model_view)(number - 1))->rows;
	list = &model->lists[number - 1];
	for (size_t i = 0; i < rows->column_count; i++) {
		if (rows->columns[i].paint || strcmp(list_title(rows, i).title, column) != 0)
			continue;
		list->sort = i;
		list->falling = strcmp(way, "falling") == 0;
		list->sorts = true;
	}
}

static void settings_parse_line(struct model *model, const char *name, const char *value,
				const char *more)
{
	uint64_t number;

	if (strcmp(name, "view") == 0 && text_parse_u64(value, &number) == 0 && number >= 1 &&
	    number <= MODEL_VIEWS)
		model->view = (enum model_view)(number - 1);
	else if (strcmp(name, "seconds") == 0 && text_parse_u64(value, &number) == 0 &&
		 number >= 1 && number <= SERIES_SECONDS)
		model->seconds = (uint32_t)number;
	else if (strcmp(name, "all") == 0)
		model->all = model->all || strcmp(value, "yes") == 0;
	else if (strcmp(name, "tree") == 0)
		model->tree.is_on = strcmp(value, "yes") == 0;
	else if (strncmp(name, "sort.", 5) == 0)
		settings_parse_sort(model, name + 5, value, more);
}

void settings_parse(struct model *model, const char *text)
{
	while (*text) {
		char name[32], value[32], more[32] = "";
		size_t length = strcspn(text, "\n");
		char line[128];

		snprintf(line, sizeof(line), "%.*s", (int)(length < 127 ? length : 127), text);
		if (length < sizeof(line) && sscanf(line, "%31s %31s %31s", name, value, more) >= 2)
			settings_parse_line(model, name, value, more);
		text += length + (text[length] == '\n');
	}
}

void settings_format(const struct model *model, char *ret_text, size_t size)
{
	FILE *out = fmemopen(ret_text, size, "w");

	*ret_text = '\0';
	if (!out)
		return;
	fprintf(out, "view %u\nseconds %" PRIu32 "\nall %s\ntree %s\n", model->view + 1,
		model->seconds, model->all ? "yes" : "no", model->tree.is_on ? "yes" : "no");
	for (unsigned int i = 0; i < MODEL_VIEWS; i++) {
		const struct list *list = &model->lists[i];
		const char *title = list_title(pane_of((enum model_view)i)->rows, list->sort).title;

		/* Titles of two words would be read as one. */
		if (list->sorts && !strchr(title, ' '))
			fprintf(out, "sort.%u %s %s\n", i + 1, title,
				list->falling ? "falling" : "rising");
	}
	(void)fclose(out); /* what does not fit is not saved */
}

int settings_load(struct model *model)
{
	CLEANUP_CLOSE int fd = -1;
	char path[PATH_MAX], text[SETTINGS_SIZE];
	ssize_t length;

	if (!*settings_path(path, sizeof(path)))
		return -ENOENT;
	fd = user_file_open_own(path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	length = small_file_read_fd(fd, text, sizeof(text));
	if (length < 0)
		return (int)length;
	settings_parse(model, text);
	return 0;
}

int settings_save(const struct model *model)
{
	CLEANUP_CLOSE int fd = -1;
	char path[PATH_MAX], text[SETTINGS_SIZE];

	if (!*settings_path(path, sizeof(path)))
		return -ENOENT;
	fd = user_file_open_own(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return fd;
	settings_format(model, text, sizeof(text));
	return small_file_write_fd(fd, text, strlen(text));
}
