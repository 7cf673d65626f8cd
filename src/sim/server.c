/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A server that forks workers, one device each.
 *
 * A worker loads its model, answers requests for a few seconds, frees everything, ends, and is
 * replaced, as in servers that do not trust their workers to run forever. The parent itself uses no
 * device.
 *
 * All workers hold one end of a socket pair whose other end only the parent has: they end when it
 * is closed, deliberately or by the parent's death.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "sim/pile.h"
#include "sim/workload.h"

#define MIB (UINT64_C(1) << 20)
#define PAGE 2048u
#define LIFE_MS_MIN 2000u
#define LIFE_MS_MAX 6000u
#define SHORT_ROUND 3u /* requests, if run_ms is 0 */
#define WATCH_MS 10u   /* how often the parent checks for workers that have ended */

struct worker {
	pid_t pid; /* 0 = not running */
	uint32_t generation;
};

struct server {
	struct workload_context *context;
	const struct sim_card *card;
	struct worker *workers; /* ours */
	uint32_t n;
	int lifeline[2]; /* the parent's end, the workers' end */
};

static int load_model(struct workload_context *context, struct sim_device *device,
		      struct sim_pile *pile)
{
	static const char *const parts[] = {"encoder", "decoder", "head"};
	static const uint64_t sizes[] = {640 * MIB, 910 * MIB, 106 * MIB};
	int r = 0;

	workload_phase("load");
	for (uint32_t i = 0; r == 0 && i < 3; i++) {
		struct sim_request request = {
			.type = TTMEM_DRAM,
			.size = workload_size(context, sizes[i], PAGE),
			.page_size = PAGE,
			.name = parts[i],
		};

		r = sim_pile_alloc(pile, device, &request, NULL);
	}
	ttmem_phase_pop();
	return r;
}

/* One request: memory of random size that is freed with the answer. */
static int answer(struct workload_context *context, struct sim_device *device, uint32_t number)
{
	struct sim_pile pile = SIM_PILE_NULL;
	uint64_t mib = sim_random_between(&context->random, 4, 96);
	const struct sim_request requests[] = {
		{.type = TTMEM_DRAM,
		 .size = workload_size(context, mib * MIB, PAGE),
		 .page_size = PAGE,
		 .name = "request.input"},
		{.type = TTMEM_DRAM,
		 .size = workload_size(context, 3 * mib * MIB, PAGE),
		 .page_size = PAGE,
		 .name = "request.kv_cache"},
		{.type = TTMEM_L1,
		 .size = workload_size(context, 8 * MIB, PAGE),
		 .page_size = PAGE,
		 .name = "request.scratch"},
	};
	int r = 0;

	workload_phase("serve");
	workload_phase("request %u", number % 1000);
	for (size_t i = 0; r == 0 && i < sizeof(requests) / sizeof(requests[0]); i++)
		r = sim_pile_alloc(&pile, device, &requests[i], NULL);
	workload_pause(context);
	sim_pile_deinit(&pile);
	ttmem_phase_pop();
	ttmem_phase_pop();
	return r;
}

/* The fault: a result that is passed on and never freed. */
static int answer_and_forget(struct workload_context *context, struct sim_device *device)
{
	struct sim_request request = {
		.type = TTMEM_DRAM,
		.size = workload_size(context, 24 * MIB, PAGE),
		.page_size = PAGE,
		.name = "request.result",
	};
	uint64_t address;

	return sim_device_alloc(device, &request, &address);
}

static int serve(struct workload_context *context, struct sim_device *device, bool leaks)
{
	struct sim_pile model = SIM_PILE_NULL;
	int r;

	r = load_model(context, device, &model);
	for (uint32_t number = 0; r == 0 && !workload_ended(context); number++) {
		if (!context->run_ms && number == SHORT_ROUND)
			break;
		r = answer(context, device, number);
		if (r == 0 && leaks && number % 8 == 0)
			r = answer_and_forget(context, device);
	}
	sim_pile_deinit(&model);
	return r;
}

/* The life of a worker. It must not return into the parent's code, nor run its exit handlers. */
static _Noreturn void worker_main(const struct server *server, uint32_t index)
{
	struct workload_context context = *server->context;
	uint32_t generation = server->workers[index].generation;
	uint32_t board = context.first_device + index / server->card->chips * server->card->chips;
	struct sim_device device = {0};
	uint64_t life_end;
	char name[16];
	int r;

	(void)close(server->lifeline[0]); /* only a copy: it does not matter if it fails */
	(void)snprintf(name, sizeof(name), "server-worker-%u", (index + 1) % 10);
	(void)prctl(PR_SET_NAME, name); /* only for show */

	context.lifeline = server->lifeline[1];
	context.random.state = context.seed ^ ((uint64_t)generation << 32 | (index + 1));
	life_end =
		workload_now_ns() +
		sim_random_between(&context.random, LIFE_MS_MIN, LIFE_MS_MAX) * UINT64_C(1000000);
	if (life_end < context.deadline_ns)
		context.deadline_ns = life_end;

	r = sim_device_init(&device, server->card, board, index % server->card->chips,
			    context.first_device + index, &context.share);
	if (r == 0)
		r = serve(&context, &device, context.leaking_worker == index + 1);
	sim_device_deinit(&device);
	ttmem_goodbye();
	_exit(r == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static int start_worker(struct server *server, uint32_t index)
{
	struct worker *worker = &server->workers[index];
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		worker_main(server, index);
	worker->pid = pid;
	worker->generation++;
	return 0;
}

/* Reaps workers that have ended, or waits for all of them. One that was killed is just gone. */
static void collect(struct server *server, bool wait)
{
	for (uint32_t i = 0; i < server->n; i++) {
		struct worker *worker = &server->workers[i];
		pid_t r;

		if (!worker->pid)
			continue;
		do {
			r = waitpid(worker->pid, NULL, wait ? 0 : WNOHANG);
		} while (r < 0 && errno == EINTR);
		if (r != 0)
			worker->pid = 0;
	}
}

/* Replaces workers until the time is over. */
static int watch(struct server *server)
{
	static const struct timespec nap = {.tv_nsec = WATCH_MS * 1000000l};
	int r = 0;

	while (r == 0 && workload_again(server->context)) {
		(void)nanosleep(&nap, NULL); /* may return early */
		collect(server, false);
		for (uint32_t i = 0; r == 0 && i < server->n; i++) {
			if (!server->workers[i].pid)
				r = start_worker(server, i);
		}
	}
	return r;
}

static int prepare(struct server *server)
{
	const struct workload_context *context = server->context;
	uint32_t n;

	server->card = sim_card_find(context->card);
	if (!server->card)
		return -EINVAL;
	n = context->workers;
	if (!n)
		n = server->card->chips > 2 ? server->card->chips : 2;
	if (context->first_device >= TTMEM_DEVICE_COUNT ||
	    n > TTMEM_DEVICE_COUNT - context->first_device)
		return -EINVAL;
	server->workers = calloc(n, sizeof(*server->workers));
	if (!server->workers)
		return -ENOMEM;
	server->n = n;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, server->lifeline) < 0)
		return -errno;
	return 0;
}

/**
 * workload_server() - play the server
 * @context: the context; run_ms 0 starts each worker once for a few requests
 *
 * Return: 0 or a negative errno; all workers have ended either way.
 */
int workload_server(struct workload_context *context)
{
	struct server server = {.context = context, .lifeline = {-1, -1}};
	int r;

	r = prepare(&server);
	for (uint32_t i = 0; r == 0 && i < server.n; i++)
		r = start_worker(&server, i);
	if (r == 0 && !context->run_ms && !workload_ended(context))
		collect(&server, true); /* they end on their own */
	else if (r == 0)
		r = watch(&server);

	if (server.lifeline[0] >= 0) {
		(void)close(server.lifeline[0]); /* ends the workers */
		(void)close(server.lifeline[1]);
	}
	collect(&server, true);
	free(server.workers);
	return r;
}
