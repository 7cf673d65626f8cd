/* SPDX-License-Identifier: Apache-2.0 */

/* Settings come back, and a file that is something else changes nothing. */

#include "tui/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/user-file.h"
#include "base/testing/unit.h"
#include "tui/model.h"

UNIT(what_was_saved_comes_back)
{
	struct model before, after;
	char text[SETTINGS_SIZE];

	model_init(&before);
	model_init(&after);
	settings_parse(&before, "view 3\nseconds 60\nall yes\ntree yes\nsort.2 PID rising\n");
	assert(before.view == MODEL_BUFFERS && before.seconds == 60 && before.all);
	assert(before.tree.is_on && before.lists[1].sort == 0 && !before.lists[1].falling);
	settings_format(&before, text, sizeof(text));
	settings_parse(&after, text);
	assert(after.view == before.view && after.seconds == 60 && after.tree.is_on);
	assert(after.lists[1].sorts && after.lists[1].sort == 0);
	model_deinit(&before);
	model_deinit(&after);
}

UNIT(other_texts_change_nothing)
{
	static const char *const texts[] = {
		"view 0\nview 99\nview -1\nview",
		"seconds 0\nseconds 18446744073709551615\nseconds x",
		"sort.2 NOTHING falling\nsort.99 PID rising\nsort. PID\nsort.2 DRAM+L1 rising",
		"\n\n\n \t\033[2J\xff\xff = = =\nall\ntree maybe\nall no",
		"",
	};
	struct model model, plain;
	char noise[SETTINGS_SIZE];

	model_init(&model);
	model_init(&plain);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		settings_parse(&model, texts[i]);
	memset(noise, 'v', sizeof(noise) - 1);
	noise[sizeof(noise) - 1] = '\0';
	settings_parse(&model, noise);
	assert(model.view == plain.view && model.seconds == plain.seconds);
	assert(!model.all && !model.tree.is_on);
	for (size_t i = 0; i < MODEL_VIEWS; i++) {
		assert(!model.lists[i].sorts && model.lists[i].sort == plain.lists[i].sort);
		assert(model.lists[i].falling == plain.lists[i].falling);
	}
	model_deinit(&model);
	model_deinit(&plain);
}

UNIT(the_file_is_in_the_folder_for_settings)
{
	char folder[] = "/tmp/ttmem-settings-XXXXXX", path[256];
	struct model model;

	assert(mkdtemp(folder));
	assert(setenv("XDG_CONFIG_HOME", folder, 1) == 0);
	model_init(&model);
	assert(settings_load(&model) == -ENOENT);
	model.view = MODEL_SITES;
	assert(settings_save(&model) == 0);
	model.view = MODEL_DEVICES;
	assert(settings_load(&model) == 0 && model.view == MODEL_SITES);
	/* A pipe that nobody writes to is not waited for. */
	settings_path(path, sizeof(path));
	assert(unlink(path) == 0 && mkfifo(path, 0600) == 0);
	(void)settings_load(&model); /* returns */
	assert(unlink(path) == 0);
	*strrchr(path, '/') = '\0';
	assert(rmdir(path) == 0 && rmdir(folder) == 0);
	model_deinit(&model);
	/* A relative folder is none. */
	assert(setenv("XDG_CONFIG_HOME", "here", 1) == 0 && unsetenv("HOME") == 0);
	assert(!*settings_path(path, sizeof(path)));
}

/* As with a sudo that keeps HOME. */
UNIT(the_home_of_another_user_is_left_alone)
{
	char home[256], config[256];
	struct model model;

	if (geteuid() != 0)
		unit_skip("only root makes folders of others");
	snprintf(home, sizeof(home), "%s", unit_path("home"));
	snprintf(config, sizeof(config), "%s", unit_path("home/.config"));
	assert(mkdir(home, 0755) == 0 && chown(home, 1001, 1001) == 0);
	assert(setenv("HOME", home, 1) == 0 && unsetenv("XDG_CONFIG_HOME") == 0);
	model_init(&model);
	assert(settings_save(&model) == USER_FILE_OTHERS && access(config, F_OK) < 0);
	assert(settings_load(&model) == USER_FILE_OTHERS);
	assert(chown(home, 0, 0) == 0 && settings_save(&model) == 0);
	assert(settings_load(&model) == 0);
	model_deinit(&model);
}
