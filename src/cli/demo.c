/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ttmem demo: a small machine room on simulated cards. Several real processes run realistic
 * workloads; one is killed midway, one frees a buffer twice, one fails because of fragmentation,
 * one leaks. Everything on the screen is read from their books, as in every other command.
 */

#include "cli/demo.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/screen.h"
#include "cli/run/run-family.h"
#include "cli/run/run-spawn.h"
#include "cli/smi/smi.h"
#include "model/filter.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "sim/workload.h"

#define DEMO_SECONDS 30
#define DEMO_FRAME_MS 250
#define DEMO_ENDLESS_MS (24u * 3600 * 1000)

/* One member of the cast. Times are percentages of the whole run. */
struct demo_part {
	const char *workload;
	const char *card;
	const char *comm;
	const char *device;
	unsigned int enters;
	unsigned int killed; /* 0 = never */
	const char *pace_ms;
	const char *share; /* of its card's memory, "INDEX/COUNT" */
};

static const struct demo_part demo_cast[] = {
	{"llm", "n300", "llama-serve", "0", 0, 0, "20", "0/1"},
	{"training", "p150", "train-llama", "2", 0, 45, "15", "0/2"},
	{"server", "n150", "embed-server", "3", 5, 0, "30", "0/2"},
	{"leak", "n150", "rag-cache", "3", 10, 0, "25", "1/2"},
	{"double_free", "p150", "kv-evict", "2", 20, 0, "40", "1/2"},
	{"fragmentation", "n150", "lora-adapter", "5", 30, 0, "20", "0/1"},
};

struct demo {
	uint32_t seconds;
	bool keep;
	bool is_terminal;
	struct family *family;
	struct story story;
	struct screen screen;
	pid_t pids[ARRAY_SIZE(demo_cast)];
	bool was_killed[ARRAY_SIZE(demo_cast)];
	uint32_t killed_pid;
	uint64_t started_ns;
	sigset_t mask;
	struct smi_style style;
};

static volatile int demo_stop;

static void demo_on_term(int number)
{
	(void)number;
	demo_stop = 1;
}

static struct sim_share demo_share(const char *text)
{
	char *rest;
	uint32_t index = (uint32_t)strtoul(text, &rest, 10);

	return (struct sim_share){index, *rest ? (uint32_t)strtoul(rest + 1, NULL, 10) : 0};
}

/* "ttmem demo --play WORKLOAD CARD DEVICE COMM MS PACE [SHARE]": a member of the cast. */
static int demo_play(int argc, char **argv)
{
	const struct workload *workload = argc == 6 || argc == 7 ? workload_find(argv[0]) : NULL;
	struct workload_context context = {.stop = &demo_stop};
	int r;

	if (!workload)
		return COMMAND_USAGE;
	context.card = argv[1];
	context.first_device = (uint32_t)strtoul(argv[2], NULL, 10);
	context.run_ms = (uint32_t)strtoul(argv[4], NULL, 10);
	context.pace_ms = (uint32_t)strtoul(argv[5], NULL, 10);
	context.share = argc > 6 ? demo_share(argv[6]) : (struct sim_share){0};
	context.seed = (uint64_t)getpid();
	(void)prctl(PR_SET_NAME, argv[3]);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the cast ends with the demo */
	(void)signal(SIGTERM, demo_on_term);
	(void)signal(SIGINT, SIG_IGN);
	r = workload_run(workload, &context);
	return r < 0 ? COMMAND_FAILED : COMMAND_OK;
}

static uint64_t demo_elapsed_ms(const struct demo *demo)
{
	return (clock_ns(CLOCK_MONOTONIC) - demo->started_ns) / NS_PER_MS;
}

static int demo_enter(struct demo *demo, size_t i)
{
	const struct demo_part *part = &demo_cast[i];
	char ms[16];
	const char *words[] = {
		"/proc/self/exe", "demo", "--play",      part->workload, part->card, part->device,
		part->comm,       ms,     part->pace_ms, part->share,    NULL,
	};

	(void)snprintf(ms, sizeof(ms), "%u", demo->keep ? DEMO_ENDLESS_MS : demo->seconds * 1000);
	demo->pids[i] =
		spawn_tracked(words, demo->family->path, NULL, &demo->mask, &demo->family->files);
	return demo->pids[i] < 0 ? (int)demo->pids[i] : 0;
}

/* Starts and kills members of the cast when their time has come. */
static int demo_direct(struct demo *demo)
{
	uint64_t percent = demo_elapsed_ms(demo) / 10 / demo->seconds;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(demo_cast); i++) {
		const struct demo_part *part = &demo_cast[i];

		if (demo->pids[i] == 0 && percent >= part->enters)
			r = demo_enter(demo, i);
		if (part->killed && percent >= part->killed && !demo->was_killed[i] &&
		    demo->pids[i] > 0) {
			demo->was_killed[i] = true;
			demo->killed_pid = (uint32_t)demo->pids[i];
			(void)kill(demo->pids[i], SIGKILL); /* our own child */
		}
	}
	return r;
}

static void demo_write(const struct demo *demo, const struct snapshot *snapshot, FILE *out)
{
	static const struct filter everything;
	struct smi_style style = demo->style;
	uint64_t seconds = demo_elapsed_ms(demo) / 1000;

	if (demo->keep)
		fprintf(out, "ttmem demo: simulated cards, real processes; q ends it\n");
	else
		fprintf(out,
			"ttmem demo: simulated cards, real processes; %" PRIu64 " of %" PRIu32
			" s%s\n",
			seconds < demo->seconds ? seconds : demo->seconds, demo->seconds,
			demo->is_terminal ? "; q ends it" : "");
	story_write(&demo->story, out);
	style.width = output_columns(); /* the terminal may have been resized */
	smi_table(out, snapshot, &everything, &style);
}

static int demo_take(struct demo *demo, struct snapshot **ret_snapshot)
{
	static const struct snapshot_request wanted = {.incidents = true};
	struct snapshot *snapshot = snapshot_new(clock_ns(CLOCK_REALTIME));
	int r;

	if (!snapshot)
		return -ENOMEM;
	r = family_collect(demo->family, &wanted, snapshot);
	if (r == 0)
		r = snapshot_finish(snapshot);
	if (r < 0) {
		snapshot_free(snapshot);
		return r;
	}
	story_follow(&demo->story, snapshot, demo->family, demo->killed_pid);
	*ret_snapshot = snapshot;
	return 0;
}

/* Draws in place on a terminal; in a file or a pipe from time to time, and after each new event. */
static int demo_draw(struct demo *demo, bool last)
{
	static unsigned int frames, told;
	struct snapshot *snapshot;
	int r = demo_take(demo, &snapshot);

	if (r < 0)
		return r;
	if (demo->is_terminal && !last) {
		FILE *out = screen_begin(&demo->screen);

		if (out) {
			demo_write(demo, snapshot, out);
			r = screen_show(&demo->screen, out);
		}
	} else if (last || frames % 40 == 20 || told != demo->story.count) {
		demo_write(demo, snapshot, stdout);
		fputc('\n', stdout);
		(void)fflush(stdout); /* the loop checks for broken output */
	}
	told = demo->story.count;
	frames++;
	snapshot_free(snapshot);
	return r;
}

static bool demo_goes_on(const struct demo *demo)
{
	char key = screen_key();

	if (key == 'q' || key == 'Q' || output_is_stopped() || output_is_broken())
		return false;
	return demo->keep || demo_elapsed_ms(demo) < demo->seconds * UINT64_C(1000);
}

static int demo_loop(struct demo *demo)
{
	uint64_t next = 0;
	int r = 0;

	while (r == 0 && demo_goes_on(demo)) {
		uint64_t now = demo_elapsed_ms(demo);

		if (now >= next) {
			next = now + DEMO_FRAME_MS;
			r = demo_direct(demo);
			if (r == 0)
				r = demo_draw(demo, false);
		}
		now = demo_elapsed_ms(demo);
		if (r == 0)
			r = family_step(demo->family, next > now ? (int)(next - now) : 0);
	}
	return r;
}

/* Asks all processes to exit and waits up to 3 seconds. */
static void demo_curtain(struct demo *demo)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + UINT64_C(3000000000);

	for (size_t i = 0; i < ARRAY_SIZE(demo_cast); i++) {
		if (demo->pids[i] > 0)
			(void)kill(demo->pids[i],
				   SIGTERM); /* may have exited: still ours, a zombie at most */
	}
	while (demo->family->peer_count > 0 && clock_ns(CLOCK_MONOTONIC) < deadline) {
		if (family_step(demo->family, 50) < 0)
			return;
	}
}

/* Started by its path, as ./dev does: the shell may not find it by its name. */
static void demo_tell_path(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (!strchr(program_invocation_name, '/') || n <= 0)
		return;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (slash)
		printf("  export PATH=\"%.*s:$PATH\"\n", (int)(slash - path), path);
}

static void demo_farewell(const struct demo *demo)
{
	printf("What happened:\n");
	story_write(&demo->story, stdout);
	printf("\nAll of it was read out of the processes' own books; no daemon is needed.\n"
	       "\nTry next:\n");
	demo_tell_path();
	printf("  ttmem demo --keep          and in another terminal:\n"
	       "  ttmem smi -w               devices and processes, refreshed\n"
	       "  ttmem buffers --by name    who holds most\n"
	       "  ttmem incidents            double frees, failed allocations\n"
	       "  ttmem watch                events as they happen\n"
	       "  ttmem run -- ./your_app    your own program, with leaks and peaks at the end\n");
}

static int demo_perform(struct demo *demo)
{
	int r;

	r = family_new(&demo->family);
	if (r < 0)
		return r;
	output_catch_stop();
	r = family_open(demo->family, &demo->mask);
	/* Ctrl-C is delivered to us; the cast ends when we tell it to. */
	if (r == 0 && sigprocmask(SIG_SETMASK, &demo->mask, NULL) < 0)
		r = -errno;
	demo->started_ns = clock_ns(CLOCK_MONOTONIC);
	if (demo->is_terminal)
		(void)screen_keys_begin(); /* without keys, Ctrl-C ends it */
	if (r == 0)
		r = demo_loop(demo);
	screen_keys_end();
	screen_end(&demo->screen);
	/* Print the last picture in full; what does not fit scrolls. */
	if (demo->is_terminal)
		fputs("\033[H\033[J", stdout);
	if (r == 0)
		r = demo_draw(demo, true);
	demo_curtain(demo);
	if (r == 0)
		demo_farewell(demo);
	demo->family = family_free(demo->family);
	return r;
}

static int demo_run(int argc, char **argv)
{
	struct demo demo = {.seconds = DEMO_SECONDS};
	const struct options_item items[] = {
		{0, "seconds", "N", "how long it takes (30)", &demo.seconds, options_u32},
		{0, "keep", NULL, "go on until q is pressed", &demo.keep, NULL},
	};
	const struct options options = {
		.command = "demo",
		.summary = "Several processes with realistic workloads on simulated devices; one "
			   "of them is "
			   "killed,\none frees twice, one runs out of memory, one leaks.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	int r;

	if (argc > 1 && strcmp(argv[1], "--play") == 0)
		return demo_play(argc - 2, argv + 2);
	r = options_parse_only(&options, argc, argv);
	if (r != 0)
		return options_exit(r);
	output_start();
	demo.is_terminal = output_is_terminal();
	demo.style = (struct smi_style){
		.colours = output_has_colours(),
		.utf8 = output_is_utf8(),
		.widens = !demo.is_terminal,
	};
	r = demo_perform(&demo);
	if (r < 0)
		return output_fail("demo", "cannot be shown", r);
	return output_finish();
}

const struct command demo_command = {
	.name = "demo",
	.summary = "a realistic workload on simulated devices",
	.run = demo_run,
};
