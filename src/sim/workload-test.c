/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every workload frees what it allocates, on every card, finished or stopped, except for the one
 * fault that it demonstrates.
 */

#include "sim/workload.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "sim/testing/fake.h"

#define GB UINT64_C(1000000000)

static struct workload_context small(const char *card)
{
	return (struct workload_context){.card = card, .first_device = 8, .scale = 64, .seed = 1};
}

static void must_run(const char *name, struct workload_context *context)
{
	const struct workload *workload = workload_find(name);
	int r;

	assert(workload && fake_figures());
	r = workload_run(workload, context);
	if (r < 0)
		printf("%s on %s: %d\n", name, context->card, r);
	assert(r == 0);
}

/* Ignores the faults that some workloads demonstrate. */
static void check_books(void)
{
	const struct fake_figures *figures = fake_figures();

	assert(figures->live_again == 0 && figures->overlaps == 0);
	assert(figures->phases == 0);
	assert(figures->devices && figures->devices == figures->closed);
	assert(figures->hooked == figures->hooked_frees);
}

static void check_balance(void)
{
	const struct fake_figures *figures = fake_figures();

	check_books();
	assert(figures->live == 0 && figures->allocs == figures->frees);
	assert(figures->unknown_frees == 0 && figures->failed == 0);
	for (uint32_t type = 0; type < TTMEM_TYPE_COUNT; type++)
		assert(figures->bytes[type] == 0);
}

UNIT(workloads_are_found_by_name)
{
	const struct workload *workload;
	uint32_t n = 0;

	while ((workload = workload_at(n))) {
		assert(workload_find(workload->name) == workload);
		assert(workload->description[0] && sim_card_find(workload->card));
		n++;
	}
	assert(n == 7);
	assert(!workload_find("lllm") && !workload_find("") && !workload_find(NULL));
}

UNIT(wrong_contexts_are_refused)
{
	const struct workload *workload;
	struct workload_context context;

	for (uint32_t i = 0; (workload = workload_at(i)); i++) {
		context = small("n999");
		assert(workload_run(workload, &context) == -EINVAL);
		context = small("galaxy");
		context.first_device = TTMEM_DEVICE_COUNT;
		assert(workload_run(workload, &context) == -EINVAL);
	}
	context = small("galaxy");
	context.first_device = TTMEM_DEVICE_COUNT - 31;
	assert(workload_run(workload_find("mesh"), &context) == -EINVAL);
	assert(workload_run(workload_find("server"), &context) == -EINVAL);
	assert(fake_figures()->allocs == 0 && fake_figures()->devices == 0);
}

/* On every card, several seeds each, with nothing left over. */
static void check_all_cards(const char *name)
{
	const struct sim_card *card;

	for (uint32_t i = 0; (card = sim_card_at(i)); i++) {
		for (uint64_t seed = 0; seed < 3; seed++) {
			struct workload_context context = small(card->name);

			context.seed = seed;
			must_run(name, &context);
			check_balance();
		}
	}
	assert(fake_figures()->allocs > 0);
}

UNIT(llm_is_balanced)
{
	check_all_cards("llm");
}

UNIT(training_is_balanced)
{
	check_all_cards("training");
}

UNIT(server_is_balanced)
{
	check_all_cards("server");
}

UNIT(mesh_is_balanced)
{
	check_all_cards("mesh");
}

UNIT(llm_has_its_real_size)
{
	static const char *const cards[] = {"n150", "n300", "p150"};
	struct fake_figures *figures = fake_figures();

	for (size_t i = 0; i < 3; i++) {
		struct workload_context context = {.card = cards[i]};

		figures->peak[TTMEM_DRAM] = 0;
		must_run("llm", &context);
		check_balance();
		assert(figures->peak[TTMEM_DRAM] > 8 * GB && figures->peak[TTMEM_DRAM] < 12 * GB);
	}
	for (uint32_t type = 0; type < TTMEM_TYPE_COUNT; type++)
		assert(figures->by_type[type] > 0);
	assert(figures->aliases > 0 && figures->hooked > 0);
}

UNIT(training_has_its_real_size)
{
	struct workload_context context = {.card = "n150"};

	must_run("training", &context);
	check_balance();
	assert(fake_figures()->peak[TTMEM_DRAM] > 8 * GB);
}

UNIT(phases_say_where_a_buffer_was_born)
{
	struct workload_context context = small("n150");

	must_run("llm", &context);
	/* The last allocation is an op of the last token. */
	assert(strcmp(fake_figures()->alloc_phase, "decode/token 2") == 0);
	must_run("training", &context);
	assert(strcmp(fake_figures()->alloc_phase, "step 0/backward/layer 0") == 0);
	assert(strcmp(fake_figures()->alloc_name, "layers.0.feed_forward.w3.grad") == 0);
}

UNIT(the_same_seed_makes_the_same_calls)
{
	const struct workload *workload;
	struct fake_figures *figures = fake_figures();

	for (uint32_t i = 0; (workload = workload_at(i)); i++) {
		uint64_t hashes[2];

		if (strcmp(workload->name, "server") == 0)
			continue; /* the order of its processes varies */
		for (uint32_t k = 0; k < 2; k++) {
			struct workload_context context = small("n300");

			figures->hash = 0;
			must_run(workload->name, &context);
			hashes[k] = figures->hash;
		}
		assert(hashes[0] == hashes[1] && hashes[0]);
	}
}

UNIT(a_leak_stays_and_has_a_name)
{
	struct workload_context context = small("p150");

	must_run("leak", &context);
	check_books();
	assert(fake_figures()->live == 8 && fake_live_named("prompt_cache.entry") == 8);
	assert(fake_figures()->unknown_frees == 0 && fake_figures()->failed == 0);
}

UNIT(a_double_free_has_two_phases)
{
	struct workload_context context = small("n150");
	const struct fake_figures *figures = fake_figures();

	must_run("double_free", &context);
	check_books();
	assert(figures->live == 0 && figures->failed == 0);
	assert(figures->unknown_frees == 1 && figures->double_frees == 1);
	assert(strcmp(figures->freed_name, "kv_cache.block 3") == 0);
	assert(strcmp(figures->freed_phase, "serve/evict") == 0);
	assert(strcmp(figures->freed_again_phase, "shutdown") == 0);
}

UNIT(fragmentation_fails_once_though_enough_is_free)
{
	const struct sim_card *card;
	struct fake_figures *figures = fake_figures();
	uint64_t rounds = 0;

	for (uint32_t i = 0; (card = sim_card_at(i)); i++) {
		struct workload_context context = small(card->name);

		must_run("fragmentation", &context);
		check_books();
		assert(figures->live == 0 && figures->unknown_frees == 0);
		assert(figures->failed == ++rounds);
		/* Two slices were requested, the largest hole was one, and half was free. */
		assert(figures->failed_largest < figures->failed_size);
		assert(figures->failed_size < figures->peak[TTMEM_DRAM] / 4);
	}
}

UNIT(a_mesh_buffer_is_on_all_chips)
{
	struct workload_context context = small("galaxy");

	must_run("mesh", &context);
	check_balance();
	assert(fake_figures()->devices == 32);
	assert(fake_figures()->by_type[TTMEM_DRAM] == 24 * UINT64_C(32));
}

UNIT(every_worker_says_goodbye)
{
	struct workload_context context = small("n300");

	context.workers = 5;
	must_run("server", &context);
	check_balance();
	assert(fake_figures()->goodbyes == 5 && fake_figures()->devices == 5);
}

UNIT(a_worker_leaks_only_when_told_to)
{
	struct workload_context context = small("n300");

	context.workers = 3;
	context.leaking_worker = 2;
	must_run("server", &context);
	assert(fake_figures()->live == 1 && fake_figures()->unknown_frees == 0);
	assert(fake_figures()->goodbyes == 3);
}

UNIT(a_workload_stopped_before_its_start_does_nothing)
{
	const struct workload *workload;
	volatile int stop = 1;

	for (uint32_t i = 0; (workload = workload_at(i)); i++) {
		struct workload_context context = small("n300");

		context.run_ms = 60000;
		context.pace_ms = 60000;
		context.stop = &stop;
		must_run(workload->name, &context);
	}
	check_books();
	assert(fake_figures()->live == 0); /* not even the leak had begun */
}

/* Runs out of time somewhere in the middle, at a different place in each run. */
UNIT(a_workload_ends_when_its_time_is_over)
{
	const struct workload *workload;

	for (uint32_t i = 0; (workload = workload_at(i)); i++) {
		if (strcmp(workload->name, "leak") == 0)
			continue;
		for (uint32_t ms = 1; ms < 100; ms += 19) {
			struct workload_context context = small("n300");

			context.run_ms = ms;
			context.pace_ms = 1;
			must_run(workload->name, &context);
			check_books();
			assert(fake_figures()->live == 0);
		}
	}
}

static volatile int stop_now;

static void on_alarm(int signal)
{
	stop_now = 1;
}

/* Stopped from outside in the middle of a long run and of a long sleep. */
UNIT(a_workload_can_be_stopped_halfway)
{
	const struct itimerval soon = {.it_value = {.tv_usec = 60000}};
	const struct workload *workload;

	assert(signal(SIGALRM, on_alarm) != SIG_ERR);
	for (uint32_t i = 0; (workload = workload_at(i)); i++) {
		struct workload_context context = small("n300");

		context.first_device = 8 * i; /* what the leak left must not be in the way */
		context.run_ms = 3600000;
		context.pace_ms = i % 2 ? 2 : 3600000;
		context.stop = &stop_now;
		stop_now = 0;
		assert(setitimer(ITIMER_REAL, &soon, NULL) == 0);
		must_run(workload->name, &context);
		check_books();
		assert(fake_figures()->live == fake_live_named("prompt_cache.entry"));
	}
}

UNIT(workers_end_with_their_parent)
{
	const struct timespec moment = {.tv_nsec = 10000000};
	struct fake_figures *figures = fake_figures();
	pid_t pid = fork();

	assert(pid >= 0);
	if (pid == 0) {
		struct workload_context context = small("n300");

		context.workers = 3;
		context.run_ms = 3600000;
		context.pace_ms = 3600000;
		must_run("server", &context);
		_exit(0);
	}
	while (figures->devices < 3 || figures->live == 0)
		nanosleep(&moment, NULL);
	assert(kill(pid, SIGKILL) == 0);
	assert(waitpid(pid, NULL, 0) == pid);
	while (figures->goodbyes < 3)
		nanosleep(&moment, NULL);
	assert(figures->live == 0 && figures->unknown_frees == 0);
}
