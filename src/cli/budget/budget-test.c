/* SPDX-License-Identifier: Apache-2.0 */

/* Limits as people write them, and what exceeds them. */

#include "cli/budget/budget.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "cli/budget/budget-names.h"
#include "cli/budget/budget-summary.h"
#include "model/types.h"

static struct budget_limit *only(struct budget *budget, const char *text)
{
	*budget = BUDGET_NULL;
	assert(budget_add_text(budget, text) == 0);
	assert(budget->count == 1);
	return budget->limits;
}

UNIT(a_limit_may_name_device_type_phase_and_site)
{
	struct budget budget;
	struct budget_limit *limit = only(&budget, "DRAM=4G");

	assert(limit->type == TYPES_DRAM && limit->device == BUDGET_ANY);
	assert(limit->subject == BUDGET_MEMORY && limit->bytes == UINT64_C(4) << 30);
	budget_deinit(&budget);

	limit = only(&budget, "17:l1_small=1.5 MiB");
	assert(limit->type == TYPES_L1_SMALL && limit->device == 17);
	assert(limit->bytes == 3u << 19 && strcmp(limit->key, "17:l1_small") == 0);
	budget_deinit(&budget);

	limit = only(&budget, "phase:decode=0");
	assert(limit->type == BUDGET_ANY && limit->subject == BUDGET_PHASE && limit->bytes == 0);
	assert(strcmp(limit->pattern, "decode") == 0);
	budget_deinit(&budget);

	limit = only(&budget, "3:L1:site:a=b::c=2K");
	assert(limit->type == TYPES_L1 && limit->device == 3 && limit->subject == BUDGET_SITE);
	assert(strcmp(limit->pattern, "a=b::c") == 0 && limit->bytes == 2048);
	budget_deinit(&budget);
}

UNIT(what_is_no_limit_is_refused)
{
	static const char *const wrong[] = {
		"",         "DRAM",         "DRAM=",      "=4G",           "DRAM=-1",
		"DRM=4G",   "1024:DRAM=4G", "0:=4G",      "0=4G",          "DRAM=4Q",
		"phase:=1", "site:=1",      "DRAM:=1",    "DRAM:decode=1", "x:DRAM=1",
		"DRAM:0=1", "phase=1",      "-1:DRAM=4G", "0x:DRAM=1",     "DRAM:phase:=1",
	};
	struct budget budget = BUDGET_NULL;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert(budget_add_text(&budget, wrong[i]) == -EINVAL);
	assert(budget_add_text(&budget, "DRAM=99999999999999999999") == -ERANGE);
	assert(budget.count == 0);
	budget_deinit(&budget);
}

UNIT(a_later_limit_of_the_same_counts_instead)
{
	struct budget budget = BUDGET_NULL, more = BUDGET_NULL;

	assert(budget_add_text(&budget, "DRAM=1") == 0);
	assert(budget_add_text(&budget, "0:DRAM=2") == 0);
	assert(budget_add_text(&more, "dram=3") == 0);
	budget_add_all(&budget, &more);
	assert(budget.count == 2 && budget.limits[0].bytes == 3 && budget.limits[1].bytes == 2);
	budget_deinit(&budget);
	budget_deinit(&more);
}

static size_t moment(struct budget_summary *summary, uint32_t pid, uint32_t device, uint32_t type,
		     uint64_t bytes)
{
	const struct budget_moment peak = {.pid = pid,
					   .comm = "app",
					   .device = device,
					   .type = type,
					   .is_peak = true,
					   .is_exact = true,
					   .bytes = bytes};

	return budget_summary_begin(summary, &peak);
}

static void part(struct budget_summary *summary, size_t at, const char *function, const char *phase,
		 uint64_t bytes)
{
	const struct budget_part one = {.moment = at,
					.site.frame.function = function,
					.site.frame.file = "app/model.py",
					.site.frame.line = 3,
					.phase = phase,
					.bytes = bytes};

	budget_summary_add(summary, &one);
}

static struct budget_verdict judge(const struct budget_summary *summary, const char *text)
{
	struct budget_verdict verdict;
	struct budget budget = BUDGET_NULL;

	assert(budget_add_text(&budget, text) == 0);
	assert(budget_judge(&budget, summary, &verdict) ==
	       (verdict.is_over || verdict.is_unmatched));
	budget_deinit(&budget);
	return verdict;
}

UNIT(each_process_and_device_is_judged_alone)
{
	struct budget_summary summary = BUDGET_SUMMARY_NULL;
	struct budget_verdict verdict;

	moment(&summary, 1, 0, TYPES_DRAM, 100);
	moment(&summary, 2, 0, TYPES_DRAM, 90);
	moment(&summary, 2, 1, TYPES_DRAM, 120);
	moment(&summary, 2, 1, TYPES_L1, 500);
	budget_summary_finish(&summary);

	verdict = judge(&summary, "DRAM=120"); /* not 310, and a limit may be reached */
	assert(!verdict.is_over && verdict.bytes == 120 && verdict.is_exact);
	assert(verdict.moment->pid == 2 && verdict.moment->device == 1);
	verdict = judge(&summary, "0:DRAM=99");
	assert(verdict.is_over && verdict.bytes == 100 && verdict.moment->pid == 1);
	verdict = judge(&summary, "TRACE=0");
	assert(!verdict.is_over && !verdict.moment);
	budget_summary_deinit(&summary);
}

UNIT(parts_of_phases_and_sites_add_up_at_one_moment)
{
	struct budget_summary summary = BUDGET_SUMMARY_NULL;
	struct budget_verdict verdict;
	size_t first = moment(&summary, 1, 0, TYPES_DRAM, 100);
	size_t second = moment(&summary, 1, 1, TYPES_DRAM, 100);

	part(&summary, second, "load(int)", "decode", 30);
	part(&summary, first, "ns::load(std::string)", "decode/layer 3", 20);
	part(&summary, first, "load", "prefill", 40);
	part(&summary, first, "load", "prefill", 5);
	part(&summary, first, "step", "decode", 15);
	budget_summary_finish(&summary);

	assert(summary.moments[first].part_count == 3); /* the two of load in prefill are one */
	assert(summary.moments[first].parts[0].bytes == 45);
	verdict = judge(&summary, "phase:decode=34");
	assert(verdict.is_over && verdict.bytes == 35 && !verdict.is_exact);
	assert(judge(&summary, "phase:dec*=34").is_over);
	assert(!judge(&summary, "phase:decod=0").moment);
	assert(judge(&summary, "site:load=0").bytes == 45);
	assert(judge(&summary, "site:*load=0").bytes == 65);
	assert(judge(&summary, "1:site:load=0").bytes == 30);
	assert(judge(&summary, "site:model.py=0").bytes == 80);
	assert(!judge(&summary, "L1:site:load=0").moment);
	budget_summary_deinit(&summary);
}

UNIT(an_end_has_what_its_parts_have)
{
	struct budget_summary summary = BUDGET_SUMMARY_NULL;
	size_t peak = moment(&summary, 1, 0, TYPES_DRAM, 100), end, again;

	end = budget_summary_end_of(&summary, &summary.moments[peak]);
	again = budget_summary_end_of(&summary, &summary.moments[peak]);
	assert(end != peak && end == again);
	part(&summary, end, "load", NULL, 60);
	part(&summary, end, "step", NULL, UINT64_MAX);
	budget_summary_finish(&summary);
	assert(!summary.moments[end].is_peak && summary.moments[end].bytes == UINT64_MAX);
	assert(budget_summary_parts_of(&summary, &summary.moments[peak]) == &summary.moments[end]);
	budget_summary_deinit(&summary);
}

static void called(struct budget_summary *summary, size_t at, const char *calls, uint64_t bytes)
{
	const struct budget_part one = {.moment = at,
					.site.frame.function = "dram",
					.site.frame.file = "a.c",
					.site.frame.line = 7,
					.calls = calls,
					.bytes = bytes};

	budget_summary_add(summary, &one);
}

UNIT(a_call_site_is_matched_by_any_frame_of_its_stack)
{
	struct budget_summary summary = BUDGET_SUMMARY_NULL;
	size_t at = moment(&summary, 1, 0, TYPES_DRAM, 100);

	called(&summary, at, "a.c:dram <- a.c:scratch <- a.c:main", 30);
	called(&summary, at, "a.c:dram <- model.cc:ns::load <- a.c:main", 70);
	budget_summary_finish(&summary);
	summary.is_tracked = true;
	assert(judge(&summary, "site:scratch=1").bytes == 30);
	assert(judge(&summary, "site:ns::load=1").bytes == 70);
	assert(judge(&summary, "site:model.cc=1").bytes == 70);
	assert(judge(&summary, "site:main=1").bytes == 100);
	assert(judge(&summary, "site:dram=1").bytes == 100);
	assert(!judge(&summary, "site:cratch=1").moment);
	budget_summary_deinit(&summary);
}

UNIT(a_limit_that_matches_nothing_fails_unless_it_is_optional)
{
	struct budget_summary summary = BUDGET_SUMMARY_NULL;
	struct budget budget = BUDGET_NULL;
	struct budget_verdict verdicts[5];
	struct budget_near near;
	size_t at = moment(&summary, 1, 0, TYPES_DRAM, 100);

	called(&summary, at, "a.c:dram <- a.c:scratch <- a.c:main", 100);
	budget_summary_finish(&summary);
	summary.is_tracked = true;
	assert(budget_add_text(&budget, "site:skratch=1") == 0);
	assert(budget_add_text(&budget, "site:gone=1") == 0);
	assert(budget_add_text(&budget, "phase:x=1") == 0);
	assert(budget_add_text(&budget, "5:site:scratch=1") == 0); /* it exists, elsewhere */
	assert(budget_add_text(&budget, "TRACE=1") == 0);          /* 0 bytes of it */
	assert(budget_set_optional(&budget, "phase:x") && !budget_set_optional(&budget, "L1"));
	assert(budget_judge(&budget, &summary, verdicts) == 2);
	assert(verdicts[0].is_unmatched && verdicts[1].is_unmatched);
	assert(!verdicts[2].is_unmatched && !verdicts[3].is_unmatched && !verdicts[4].is_unmatched);
	near = budget_near(verdicts[0].limit, &summary);
	assert(near.is_near && near.count == 1 && strcmp(near.names[0], "scratch") == 0);
	near = budget_near(verdicts[1].limit, &summary);
	assert(!near.is_near && near.count == 3 && strcmp(near.names[0], "a.c") == 0);
	summary.is_tracked = false; /* that is told instead */
	assert(budget_judge(&budget, &summary, verdicts) == 0);
	budget_deinit(&budget);
	budget_summary_deinit(&summary);
}
