/* SPDX-License-Identifier: Apache-2.0 */

/* Reads limits as people write them, and compares them with what was held. */

#include "cli/budget/budget.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/budget/budget-names.h"
#include "cli/budget/budget-summary.h"
#include "cli/common/must.h"
#include "model/merge.h"
#include "model/types.h"

#define BUDGET_WORD 32u /* longer than any number or type */

void budget_deinit(struct budget *budget)
{
	for (size_t i = 0; i < budget->count; i++)
		free(budget->limits[i].key);
	free(budget->limits);
	*budget = BUDGET_NULL;
}

/* Copies what stands before the next colon; false: too long to be anything we know. */
static bool budget_word(const char *text, char ret_word[BUDGET_WORD])
{
	size_t length = strcspn(text, ":");

	if (length >= BUDGET_WORD)
		return false;
	memcpy(ret_word, text, length);
	ret_word[length] = '\0';
	return true;
}

/* "phase:NAME" or "site:NAME"; -EINVAL. */
static int budget_parse_subject(const char *text, struct budget_limit *limit)
{
	if (strncmp(text, "phase:", strlen("phase:")) == 0) {
		limit->subject = BUDGET_PHASE;
		limit->pattern = text + strlen("phase:");
	} else if (strncmp(text, "site:", strlen("site:")) == 0) {
		limit->subject = BUDGET_SITE;
		limit->pattern = text + strlen("site:");
	} else {
		return -EINVAL;
	}
	return *limit->pattern ? 0 : -EINVAL;
}

static int budget_parse_device(const char **text, struct budget_limit *limit)
{
	char word[BUDGET_WORD];
	uint64_t device;

	if (**text < '0' || **text > '9')
		return 0;
	if (!budget_word(*text, word) || text_parse_u64(word, &device) < 0 ||
	    device >= BOOK_DEVICES || (*text)[strlen(word)] != ':')
		return -EINVAL;
	limit->device = (uint32_t)device;
	*text += strlen(word) + 1;
	return 0;
}

/* Fills in all but key and bytes; the pattern points into @key. */
static int budget_parse(const char *key, struct budget_limit *limit)
{
	char word[BUDGET_WORD];
	int r;

	*limit = (struct budget_limit){.device = BUDGET_ANY, .type = BUDGET_ANY};
	r = budget_parse_device(&key, limit);
	if (r < 0 || budget_parse_subject(key, limit) == 0)
		return r;
	if (!budget_word(key, word) || types_parse(word, &limit->type) < 0)
		return -EINVAL;
	key += strlen(word);
	return *key ? budget_parse_subject(key + 1, limit) : 0;
}

static bool budget_is_same(const struct budget_limit *a, const struct budget_limit *b)
{
	return a->device == b->device && a->type == b->type && a->subject == b->subject &&
	       (a->subject == BUDGET_MEMORY || strcmp(a->pattern, b->pattern) == 0);
}

int budget_add(struct budget *budget, const char *key, uint64_t bytes)
{
	CLEANUP_FREE char *copy = must_copy(key);
	struct budget_limit limit;
	int r = budget_parse(copy, &limit);

	if (r < 0)
		return r;
	for (size_t i = 0; i < budget->count; i++) {
		if (budget_is_same(&budget->limits[i], &limit)) {
			budget->limits[i].bytes = bytes;
			budget->limits[i].is_optional = false;
			return 0;
		}
	}
	must_grow(budget->limits, &budget->capacity, budget->count + 1);
	limit.key = cleanup_steal(copy);
	limit.bytes = bytes;
	budget->limits[budget->count++] = limit;
	return 0;
}

int budget_add_text(struct budget *budget, const char *text)
{
	CLEANUP_FREE char *copy = must_copy(text);
	char *size = strrchr(copy, '='); /* a name may have one, a size has none */
	uint64_t bytes;
	int r;
	if (!size)
		return -EINVAL;
	*size++ = '\0';
	r = text_parse_size(size, &bytes);
	return r < 0 ? r : budget_add(budget, copy, bytes);
}

void budget_add_all(struct budget *budget, const struct budget *more)
{
	for (size_t i = 0; i < more->count; i++)
		(void)budget_add(budget, more->limits[i].key,
				 more->limits[i].bytes); /* its key was valid before */
}

bool budget_set_optional(struct budget *budget, const char *key)
{
	for (size_t i = 0; i < budget->count; i++) {
		if (strcmp(budget->limits[i].key, key) == 0) {
			budget->limits[i].is_optional = true;
			return true;
		}
	}
	return false;
}

/* Without the arguments that names of C++ functions have. */
static bool budget_matches_function(const char *pattern, const char *function)
{
	CLEANUP_FREE char *bare = NULL;

	if (fnmatch(pattern, function, 0) == 0)
		return true;
	if (!strchr(function, '('))
		return false;
	bare = must_have(strndup(function, strcspn(function, "(")));
	return fnmatch(pattern, bare, 0) == 0;
}

static bool budget_matches_file(const char *pattern, const char *file)
{
	const char *slash = strrchr(file, '/');

	return fnmatch(pattern, slash ? slash + 1 : file, 0) == 0;
}

/* "file:function <- file:function <- module", innermost first. */
static bool budget_matches_calls(const char *pattern, const char *calls)
{
	CLEANUP_FREE char *copy = must_copy(calls);
	struct budget_names names = {.next = copy};
	const char *name;

	while (budget_names_next(&names, &name)) {
		if (budget_matches_function(pattern, name))
			return true;
	}
	return false;
}

bool budget_counts(const struct budget_limit *limit, const struct budget_part *part)
{
	switch (limit->subject) {
	case BUDGET_PHASE: /* and those within it: "decode" has "decode/layer 3" */
		return part->phase && fnmatch(limit->pattern, part->phase, FNM_LEADING_DIR) == 0;
	case BUDGET_SITE:
		return (part->site.frame.function &&
			budget_matches_function(limit->pattern, part->site.frame.function)) ||
		       (part->site.frame.file &&
			budget_matches_file(limit->pattern, part->site.frame.file)) ||
		       (part->calls && budget_matches_calls(limit->pattern, part->calls));
	case BUDGET_MEMORY:
		break;
	}
	return true;
}

/* What counts for the limit at a moment. False: nothing. */
static bool budget_measure(const struct budget_limit *limit, const struct budget_moment *moment,
			   uint64_t *ret_bytes)
{
	bool any = false;

	/* What several programs of a process left one after the other is no peak. */
	*ret_bytes = moment->bytes;
	if (limit->subject == BUDGET_MEMORY)
		return moment->is_peak;
	*ret_bytes = 0;
	for (size_t i = 0; i < moment->part_count; i++) {
		if (!budget_counts(limit, &moment->parts[i]))
			continue;
		any = true;
		*ret_bytes = merge_add(*ret_bytes, moment->parts[i].bytes);
	}
	return any;
}

/* Whether the name of a phase or call site exists at all, wherever it was seen. */
static bool budget_is_seen(const struct budget_limit *limit, const struct budget_summary *summary)
{
	uint64_t bytes;

	for (size_t i = 0; i < summary->count; i++) {
		if (budget_measure(limit, &summary->moments[i], &bytes))
			return true;
	}
	return false;
}

static struct budget_verdict budget_judge_one(const struct budget_limit *limit,
					      const struct budget_summary *summary)
{
	struct budget_verdict verdict = {.limit = limit};

	for (size_t i = 0; i < summary->count; i++) {
		const struct budget_moment *moment = &summary->moments[i];
		uint64_t bytes;

		if ((limit->device != BUDGET_ANY && limit->device != moment->device) ||
		    (limit->type != BUDGET_ANY && limit->type != moment->type) ||
		    !budget_measure(limit, moment, &bytes) ||
		    (verdict.moment && bytes <= verdict.bytes))
			continue;
		verdict.moment = moment;
		verdict.bytes = bytes;
	}
	verdict.is_exact = limit->subject == BUDGET_MEMORY
				   ? verdict.moment && verdict.moment->is_exact
				   : summary->has_all_parts;
	verdict.is_over = verdict.bytes > limit->bytes;
	/* A type cannot be misspelled: nothing of it is 0 bytes. */
	verdict.is_unmatched = summary->is_tracked && !summary->gave_up &&
			       limit->subject != BUDGET_MEMORY && !limit->is_optional &&
			       !verdict.moment && !budget_is_seen(limit, summary);
	return verdict;
}

size_t budget_judge(const struct budget *budget, const struct budget_summary *summary,
		    struct budget_verdict *ret_verdicts)
{
	size_t failed = 0;

	for (size_t i = 0; i < budget->count; i++) {
		ret_verdicts[i] = budget_judge_one(&budget->limits[i], summary);
		failed += ret_verdicts[i].is_over || ret_verdicts[i].is_unmatched;
	}
	return failed;
}
