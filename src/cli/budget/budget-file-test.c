/* SPDX-License-Identifier: Apache-2.0 */

/* Budget files: what is in them, what is wrong with them and where, and how they are updated. */

#include "cli/budget/budget-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "cli/budget/budget-summary.h"
#include "cli/budget/budget.h"
#include "model/types.h"

/* The path of a file with that text; the caller frees it. */
static char *file_of(const char *text)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	char *path;

	assert(asprintf(&path, "%s/budget.json", unit_dir()) > 0);
	file = fopen(path, "we");
	assert(file && fputs(text, file) >= 0);
	return path;
}

static int load(const char *text, struct budget *budget, struct budget_file **file, char *error)
{
	CLEANUP_FREE char *path = file_of(text);

	*budget = BUDGET_NULL;
	return budget_file_load(path, budget, file, error);
}

UNIT(sizes_are_numbers_or_texts)
{
	char error[BUDGET_FILE_ERROR] = "";
	struct budget budget;

	assert(load("{\"schema\": \"ttmem.budget/1\", \"description\": \"x\", \"limits\": "
		    "{\"DRAM\": \"4G\", \"0:L1\": 12, \"phase:a\\u00e9\": \"1 KiB\"}}",
		    &budget, NULL, error) == 0);
	assert(budget.count == 3 && budget.limits[0].bytes == UINT64_C(4) << 30);
	assert(budget.limits[1].bytes == 12 && strcmp(budget.limits[2].pattern, "a\303\251") == 0);
	budget_deinit(&budget);
}

UNIT(a_mistake_is_told_with_its_line)
{
	static const struct {
		const char *text, *error;
	} wrong[] = {
		{"", "line 1: "},
		{"{\n\"schema\": ,}", "line 2: "},
		{"[]", "is not an object"},
		{"{}", "has no \"schema\""},
		{"{\n \"schema\": \"ttmem.run/1\"}",
		 "line 2: \"schema\" is not \"ttmem.budget/1\""},
		{"{\"schema\": \"ttmem.budget/1\"}", "has no \"limits\""},
		{"{\"schema\": \"ttmem.budget/1\",\n\n\"limit\": {}}",
		 "line 3: \"limit\" is not known"},
		{"{\"schema\": \"ttmem.budget/1\",\n\"limits\": []}",
		 "line 2: \"limits\" is not an object"},
		{"{\"schema\": \"ttmem.budget/1\", \"limits\": {\n\"DRAM\": 1,\n\"DRAM\": 2}}",
		 "line 3: "},
		{"{\"schema\": \"ttmem.budget/1\", \"limits\": {\n\"L1\": 1,\n\"D\\u0052M\": 2}}",
		 "line 3: \"DRM\" is no limit"},
		{"{\"schema\": \"ttmem.budget/1\", \"limits\": {\n\"L1\": \"DRAM\",\n\"DRAM\": 2}}",
		 "line 2: \"L1\" needs a size"},
		{"{\"schema\": \"ttmem.budget/1\", \"limits\": {\n\"DRAM\": -2}}",
		 "line 2: \"DRAM\" needs"},
		{"{\"schema\": \"ttmem.budget/1\", \"limits\": {\n\"DRAM\": 2.5}}",
		 "line 2: \"DRAM\" needs"},
		{"{\"schema\": \"ttmem.budget/1\", \"limits\": {\n\"DRAM\": null}}",
		 "line 2: \"DRAM\" needs"},
		{"{\"schema\": \"ttmem.budget/1\", \"limits\": {},\n\"optional\": true}",
		 "line 2: \"optional\" is not a list"},
		{"{\"schema\": \"ttmem.budget/1\", \"limits\": {\"L1\": 1},\n\"optional\": "
		 "[\"DRAM\"]}",
		 "line 2: \"optional\" names \"DRAM\", which is not one of the limits"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		char error[BUDGET_FILE_ERROR] = "";
		struct budget budget;

		assert(load(wrong[i].text, &budget, NULL, error) == -EINVAL);
		assert(strncmp(error, wrong[i].error, strlen(wrong[i].error)) == 0);
		budget_deinit(&budget);
	}
}

UNIT(a_file_that_is_not_there_is_told_from_one_that_is_wrong)
{
	struct budget budget = BUDGET_NULL;
	char error[BUDGET_FILE_ERROR], *text = calloc(1, BUDGET_FILE_MAX + 2);

	assert(budget_file_load("/nonexistent/budget.json", &budget, NULL, error) == -ENOENT);
	assert(budget_file_load("/", &budget, NULL, error) == -EINVAL);
	assert(text);
	memset(text, ' ', BUDGET_FILE_MAX + 1);
	assert(load(text, &budget, NULL, error) == -EINVAL && strstr(error, "more than"));
	free(text);
}

static char *written(const struct budget_file *file)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert(out);
	budget_file_write(file, out);
	assert(fclose(out) == 0);
	return text;
}

UNIT(an_update_keeps_what_it_does_not_know)
{
	char error[BUDGET_FILE_ERROR];
	struct budget_moment held = {.type = TYPES_DRAM};
	struct budget_verdict verdicts[2];
	struct budget_file *file = NULL;
	struct budget budget;
	char *text;

	assert(load("{\"schema\": \"ttmem.budget/1\", \"description\": \"mine\", \"limits\": "
		    "{\"phase:x\": \"4G\", \"DRAM\": 12}}",
		    &budget, &file, error) == 0);
	verdicts[0] = (struct budget_verdict){.limit = &budget.limits[0]};
	verdicts[1] =
		(struct budget_verdict){.limit = &budget.limits[1], .moment = &held, .bytes = 77};
	budget_file_update(file, verdicts, 2);
	text = written(file);
	assert(strstr(text, "\"mine\"") && strstr(text, "\"phase:x\": \"4G\",\n"));
	assert(strstr(text, "\"DRAM\": 77\n"));
	free(text);
	budget_file_free(file);
	budget_deinit(&budget);
}

UNIT(a_new_file_has_the_types_that_were_held)
{
	struct budget_summary summary = BUDGET_SUMMARY_NULL;
	struct budget_moment held = {.type = TYPES_L1, .bytes = 5, .is_peak = true};
	struct budget_file *file = budget_file_new();
	struct budget budget = BUDGET_NULL;
	char *text;

	(void)budget_summary_begin(&summary, &held);
	held.bytes = 9;
	(void)budget_summary_begin(&summary, &held);
	budget_file_fill(file, &summary, &budget);
	assert(budget.count == 1 && budget.limits[0].bytes == 9);
	text = written(file);
	assert(strstr(text, "\"limits\": {\n    \"L1\": 9\n  }"));
	assert(strstr(text, "\"optional\": [\n    \"L1\"\n  ]"));
	free(text);
	budget_deinit(&budget);
	budget_file_free(file);
	budget_summary_deinit(&summary);
}
