/* SPDX-License-Identifier: Apache-2.0 */

/* What logs add up to: the verdicts one by one, then random histories against a plain model. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "legacy/analyze/log-analysis.h"

static struct log_analysis *analysis;
static char path[] = "log", *paths[] = {path};

static void analyze(const char *text)
{
	struct log_reader *log;

	analysis = log_analysis_new(paths);
	log = log_reader_new(log_analysis_take, analysis);
	log_reader_feed(log, text, strlen(text));
	log_reader_finish(log);
	assert(log_reader_counts(log)->damaged == 0);
	log_reader_free(log);
	log_analysis_finish(analysis);
}

static void done(void)
{
	analysis = log_analysis_free(analysis);
}

static bool found(size_t row, enum log_analysis_kind kind, enum log_analysis_cause cause)
{
	return row < analysis->finding_count && analysis->findings[row].kind == kind &&
	       analysis->findings[row].cause == cause;
}

#define ALLOC(pid, size, device, id) \
	"✓ [PID " pid "] Allocated " size " bytes of DRAM on device " device " (buffer_id=" id
#define NEW(pid, size, device, id) ALLOC(pid, size, device, id) ")\n"
#define REF(pid, size, device, id, refs) ALLOC(pid, size, device, id) ", ref_count=" refs ")\n"
#define FREED(pid, id, device, size) \
	"✗ [PID " pid "] Freed buffer " id " on device " device " (" size " bytes, FINAL)\n"
#define LESS(pid, id, device, size, refs)                                            \
	"✗ [PID " pid "] Freed buffer " id " on device " device " (" size " bytes, " \
	"ref_count=" refs " remaining)\n"
#define UNKNOWN(pid, id, device) \
	"⚠ [PID " pid "] Deallocation for unknown buffer " id " on device " device " (a)\n"

UNIT(balanced_log_has_no_leaks)
{
	analyze(NEW("1", "10", "0", "0x1") FREED("1", "0x1", "0", "10"));
	assert(analysis->leak_count == 0 && analysis->finding_count == 0 && !analysis->is_inexact);
	assert(analysis->devices[0]->sums[0].peak_bytes == 10);
	done();
}

/*
 * The example of the tracing guide: the address was used twice, then the first buffer was freed
 * again.
 */
UNIT(a_free_after_address_reuse_is_a_double_free)
{
	analyze(NEW("1", "524288", "2", "25718784") FREED("1", "25718784", "2", "524288")
			NEW("1", "98304", "2", "25718784") FREED("1", "25718784", "2", "98304")
				UNKNOWN("1", "25718784", "2"));
	assert(analysis->leak_count == 0 && analysis->finding_count == 1);
	assert(found(0, LOG_ANALYSIS_DOUBLE_FREE, LOG_ANALYSIS_ADDRESS_REUSE));
	assert(analysis->findings[0].line == 5 && analysis->findings[0].size == 98304);
	assert(analysis->devices[2]->sums[0].reuses == 1);
	done();
}

/* The same in the log of a server that missed the first free: its references are ghosts. */
UNIT(a_missed_free_is_found_as_a_size_change)
{
	analyze(NEW("1", "524288", "2", "0x1") REF("1", "98304", "2", "0x1", "2")
			LESS("1", "0x1", "2", "524288", "1"));
	assert(analysis->leak_count == 0 && analysis->finding_count == 1);
	assert(found(0, LOG_ANALYSIS_SIZE_CHANGE, LOG_ANALYSIS_WHILE_LIVE));
	assert(analysis->findings[0].size == 524288 && analysis->findings[0].other_size == 98304);
	done();
	analyze(NEW("1", "524288", "2", "0x1") REF("1", "98304", "2", "0x1", "2")
			LESS("1", "0x1", "2", "524288", "1") FREED("1", "0x1", "2", "524288"));
	assert(analysis->leak_count == 0 && analysis->finding_count == 2);
	assert(found(0, LOG_ANALYSIS_DOUBLE_FREE, LOG_ANALYSIS_ADDRESS_REUSE));
	done();
}

/* The enhanced server overwrites the size and reports that first; the next line adds nothing. */
UNIT(size_changes_of_the_enhanced_server_are_read)
{
	analyze(NEW(
		"1", "10", "0",
		"0x1") "⚠ [PID 1] Buffer reused with DIFFERENT size: old=10 new=20 (buffer_id=0x1, "
		       "device=0)\n" REF("1", "20", "0", "0x1", "2") LESS(
			       "1", "0x1", "0", "20", "1") "⚠ [PID 1] Deallocation for ALREADY "
							   "FREED buffer 0x7 on device 0 "
							   "(allocs=1 frees=1)\n");
	assert(analysis->finding_count == 2);
	assert(found(0, LOG_ANALYSIS_DOUBLE_FREE, LOG_ANALYSIS_FREED_BEFORE));
	assert(found(1, LOG_ANALYSIS_SIZE_CHANGE, LOG_ANALYSIS_WHILE_LIVE));
	assert(analysis->findings[1].count == 1 && analysis->leak_count == 0);
	done();
}

UNIT(unreleased_references_are_leaks)
{
	analyze(NEW("1", "10", "0", "0x1") REF("1", "10", "0", "0x1", "2")
			LESS("1", "0x1", "0", "10", "1"));
	assert(analysis->leak_count == 1 && analysis->leaks[0].refs == 1);
	assert(analysis->leaks[0].how == LOG_ANALYSIS_END_OF_LOG && analysis->leaks[0].line == 1);
	done();
}

UNIT(unknown_frees_have_a_cause)
{
	analyze(NEW("1", "10", "0", "0x1") UNKNOWN("1", "0x1", "1") UNKNOWN("2", "0x1", "0")
			UNKNOWN("1", "0x9", "0")
				NEW("3", "10", "0",
				    "0x3") "   PID 3 is dead, removing its buffers...\n"
					   "   ✓ Removed 3 buffers (1 MB) from PID 3\n" UNKNOWN(
						   "3", "0x3", "0") NEW("4", "10", "0", "0x4")
						   UNKNOWN("4", "0x4", "0")
							   FREED("4", "0x77", "0", "10"));
	assert(analysis->finding_count == 5);
	assert(found(0, LOG_ANALYSIS_UNKNOWN_FREE, LOG_ANALYSIS_OTHER_DEVICE));
	assert(found(1, LOG_ANALYSIS_UNKNOWN_FREE, LOG_ANALYSIS_OTHER_PROCESS));
	assert(found(2, LOG_ANALYSIS_UNKNOWN_FREE, LOG_ANALYSIS_BEFORE_LOG));
	assert(found(3, LOG_ANALYSIS_UNKNOWN_FREE, LOG_ANALYSIS_OWNER_ENDED));
	assert(found(4, LOG_ANALYSIS_UNKNOWN_FREE, LOG_ANALYSIS_RESTART));
	assert(analysis->unseen == 2 && analysis->leak_count == 2);
	assert(analysis->leaks[0].how == LOG_ANALYSIS_END_OF_LOG &&
	       analysis->leaks[0].address == 1);
	assert(analysis->leaks[1].how == LOG_ANALYSIS_PROCESS_ENDED &&
	       analysis->leaks[1].address == 3);
	assert(analysis->devices[0]->sums[LOG_READER_NO_TYPE].early_frees == 1);
	done();
}

#define RECORD(what, device, address, size, type)                                                \
	"BUFFER " what "\nDevice: " device "\nAddress: " address "\nSize: " size "\nType: " type \
	"\n"

UNIT(types_share_addresses)
{
	analyze(RECORD("ALLOCATED", "0", "0x1", "10 bytes", "DRAM")
			RECORD("ALLOCATED", "0", "0x1", "20 bytes", "L1")
				RECORD("DEALLOCATED", "0", "0x1", "unknown", "DRAM"));
	assert(analysis->leak_count == 1 && analysis->leaks[0].type == 1 &&
	       analysis->finding_count == 0);
	done();
	analyze(RECORD("ALLOCATED", "0", "0x1", "20 bytes", "L1")
			RECORD("DEALLOCATED", "0", "0x1", "unknown", "DRAM"));
	assert(found(0, LOG_ANALYSIS_UNKNOWN_FREE, LOG_ANALYSIS_OTHER_TYPE) &&
	       analysis->leak_count == 1);
	done();
}

UNIT(two_processes_merged_by_an_old_server)
{
	analyze(NEW("1", "10", "0", "0x1") REF("2", "10", "0", "0x1", "2")
			LESS("1", "0x1", "0", "10", "1") FREED("1", "0x1", "0", "10"));
	assert(analysis->merged == 1 && analysis->leak_count == 0 && analysis->finding_count == 0);
	done();
}

UNIT(formats_are_kept_apart)
{
	analyze(NEW("1", "10", "0", "0x1") RECORD("ALLOCATED", "0", "0x1", "10 bytes", "DRAM")
			FREED("1", "0x1", "0", "10")
				RECORD("DEALLOCATED", "0", "0x1", "10 bytes", "DRAM"));
	assert(analysis->leak_count == 0 && analysis->finding_count == 0);
	done();
}

UNIT(leaks_are_grouped_by_call_site)
{
	analyze(RECORD(
		"ALLOCATED", "0", "0x1", "10 bytes",
		"DRAM") "Call Stack:\n    a\n    b\n\n" RECORD("ALLOCATED", "1", "0x1", "20 bytes",
							       "DRAM") "Call Stack:\n    a\n    "
								       "b\n\n" RECORD(
									       "ALLOCATED", "1",
									       "0x2", "5 bytes",
									       "DRAM") "Call"
										       " Sta"
										       "ck:"
										       "\n  "
										       "  "
										       "c"
										       "\n" RECORD(
											       "DEA"
											       "LLO"
											       "CAT"
											       "ED",
											       "0",
											       "0x"
											       "1",
											       "10 "
											       "byt"
											       "es",
											       "DRA"
											       "M"));
	assert(analysis->site_count == 2 && strcmp(analysis->sites[0]->stack, "a\nb") == 0);
	assert(analysis->sites[0]->sum.allocs == 2 && analysis->sites[0]->sum.frees == 1);
	assert(analysis->sites[0]->sum.bytes == 30 && analysis->sites[0]->sum.leaked_bytes == 20);
	done();
}

/* More freed buffers than are remembered: the first are forgotten, and the cause says so. */
UNIT(oldest_freed_buffers_are_forgotten)
{
	struct log_reader_event event = {.has_pid = true, .pid = 1, .has_size = true, .size = 8};

	analysis = log_analysis_new(paths);
	for (uint64_t i = 1; i <= LOG_ANALYSIS_FREED_MAX + 1000; i++) {
		event.address = i << 12;
		event.kind = LOG_READER_ALLOC;
		log_analysis_take(analysis, &event);
		event.kind = LOG_READER_FREE;
		log_analysis_take(analysis, &event);
	}
	event.kind = LOG_READER_UNKNOWN_FREE;
	log_analysis_take(analysis, &event); /* the last */
	event.address = 1 << 12;
	log_analysis_take(analysis, &event); /* the first */
	log_analysis_finish(analysis);
	assert(found(0, LOG_ANALYSIS_DOUBLE_FREE, LOG_ANALYSIS_FREED_BEFORE));
	assert(found(1, LOG_ANALYSIS_UNKNOWN_FREE, LOG_ANALYSIS_LONG_AGO));
	assert(analysis->leak_count == 0);
	done();
}

/* A plain model of what an application does to a few places, and the log of it. */
#define PIDS 3u
#define DEVICES 3u
#define TYPES 2u
#define ADDRESSES 5u
#define STEPS 400u
#define TEXT_MAX (STEPS * 512u)

struct place {
	uint64_t size;
	uint32_t refs, lives;
};

struct model {
	struct place places[PIDS][DEVICES][TYPES][ADDRESSES];
	uint64_t double_frees, reuse, unknown_frees, size_changes;
	char *text;
	size_t length;
	uint64_t random;
};

static uint32_t draw(struct model *model, uint32_t below)
{
	model->random = model->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(model->random >> 33) % below;
}

static __attribute__((format(printf, 2, 3))) void say(struct model *model, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	model->length += (size_t)vsnprintf(model->text + model->length, TEXT_MAX - model->length,
					   format, arguments);
	va_end(arguments);
	assert(model->length < TEXT_MAX);
}

static const char *const type_names[TYPES] = {"DRAM", "L1"};

/* One event of the model; true if something is freed that lives. */
static bool model_free(struct model *model, struct place *place)
{
	if (place->refs > 0) {
		place->refs--;
		return true;
	}
	model->double_frees += place->lives > 0;
	model->reuse += place->lives > 1;
	model->unknown_frees += place->lives == 0;
	return false;
}

/* As our server prints it: a size change is a free and an allocation. */
static void step_server(struct model *model, bool decimal)
{
	uint32_t p = draw(model, PIDS), d = draw(model, DEVICES), t = draw(model, TYPES);
	uint32_t a = draw(model, ADDRESSES);
	struct place *place = &model->places[p][d][t][a];
	uint64_t size = t + 2 + 2u * draw(model, 2); /* encodes the type: frees have none */
	char id[32];

	snprintf(id, sizeof(id), decimal ? "%" PRIu64 : "0x%" PRIx64, (uint64_t)(a + 1) << 12);
	if (draw(model, 2)) {
		/* Which one a free means that finds nothing is not known. */
		if (place->refs == 0 && (t || model->places[p][d][1][a].lives))
			return;
		if (!model_free(model, place))
			say(model, UNKNOWN("%u", "%s", "%u"), p + 1, id, d);
		else if (place->refs > 0)
			say(model, LESS("%u", "%s", "%u", "%" PRIu64, "%u"), p + 1, id, d,
			    place->size, place->refs);
		else
			say(model, FREED("%u", "%s", "%u", "%" PRIu64), p + 1, id, d, place->size);
		return;
	}
	if (place->refs > 0 && place->size == size) {
		place->refs++;
		say(model,
		    "✓ [PID %u] Allocated %" PRIu64 " bytes of %s on device %u (buffer_id=%s, "
		    "ref_count=%u)\n",
		    p + 1, size, type_names[t], d, id, place->refs);
		return;
	}
	if (place->refs > 0)
		say(model, FREED("%u", "%s", "%u", "%" PRIu64), p + 1, id, d, place->size);
	place->refs = 1;
	place->lives++;
	place->size = size;
	say(model, "✓ [PID %u] Allocated %" PRIu64 " bytes of %s on device %u (buffer_id=%s)\n",
	    p + 1, size, type_names[t], d, id);
}

static void step_debug(struct model *model, bool is_free)
{
	uint32_t d = draw(model, DEVICES), t = draw(model, TYPES), a = draw(model, ADDRESSES);
	struct place *place = &model->places[0][d][t][a];
	uint64_t size = 1 + draw(model, 2);

	if (is_free) {
		bool told = draw(model, 2);
		char text[64] = "unknown";

		if (told && place->size)
			snprintf(text, sizeof(text), "%" PRIu64 " bytes (0 KB)", place->size);
		(void)model_free(model, place);
		say(model, RECORD("DEALLOCATED", "%u", "0x%x (1)", "%s", "%s") "Call Stack:\n\n", d,
		    a + 1, text, type_names[t]);
		return;
	}
	if (place->refs > 0 && place->size == size)
		place->refs++;
	else {
		model->size_changes += place->refs > 0;
		place->refs = 1;
		place->lives++;
	}
	place->size = size;
	say(model, RECORD("ALLOCATED", "%u", "0x%x (1)", "%" PRIu64 " bytes (0 KB)", "%s") "\n", d,
	    a + 1, size, type_names[t]);
}

static void compare(const struct model *model)
{
	uint64_t count[LOG_ANALYSIS_KINDS] = {0}, reuse = 0, leaks = 0;

	for (size_t i = 0; i < analysis->finding_count; i++) {
		const struct log_analysis_finding *finding = &analysis->findings[i];

		count[finding->kind] += finding->count;
		if (finding->cause == LOG_ANALYSIS_ADDRESS_REUSE)
			reuse += finding->count;
	}
	assert(count[LOG_ANALYSIS_DOUBLE_FREE] == model->double_frees && reuse == model->reuse);
	assert(count[LOG_ANALYSIS_UNKNOWN_FREE] == model->unknown_frees);
	assert(count[LOG_ANALYSIS_SIZE_CHANGE] == model->size_changes);
	for (size_t i = 0; i < sizeof(model->places) / sizeof(struct place); i++)
		leaks += (&model->places[0][0][0][0])[i].refs > 0;
	assert(analysis->leak_count == leaks);
	for (size_t i = 0; i < analysis->leak_count; i++) {
		const struct log_analysis_leak *leak = &analysis->leaks[i];
		uint32_t pid = leak->process->pid;
		uint64_t a =
			leak->format == LOG_READER_SERVER ? leak->address >> 12 : leak->address;
		const struct place *place =
			&model->places[pid ? pid - 1 : 0][leak->device][leak->type][a - 1];

		assert(place->refs == leak->refs && place->size == leak->size);
	}
}

static void play(uint32_t format, uint64_t seed)
{
	struct model *model = calloc(1, sizeof(*model));

	assert(model);
	model->random = seed;
	model->text = malloc(TEXT_MAX);
	assert(model->text);
	model->text[0] = '\0';
	for (uint32_t i = 0; i < STEPS; i++) {
		if (format == LOG_READER_SERVER)
			step_server(model, seed % 2);
		else
			step_debug(model, draw(model, 2));
	}
	analyze(model->text);
	compare(model);
	done();
	free(model->text);
	free(model);
}

UNIT(random_server_logs_match_a_model)
{
	for (uint64_t seed = 1; seed <= 200; seed++)
		play(LOG_READER_SERVER, seed);
}

UNIT(random_buffer_logs_match_a_model)
{
	for (uint64_t seed = 1; seed <= 200; seed++)
		play(LOG_READER_BUFFER_DEBUG, seed);
}
