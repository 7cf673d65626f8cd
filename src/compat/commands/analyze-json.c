/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem analyze --json; docs/schema/analyze.json has the form. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/emit.h"
#include "compat/commands/analyze.h"

static bool json_has_room(const struct analyze *analyze, size_t shown)
{
	return !analyze->has_top || shown < analyze->top;
}

static void json_files(struct emit *json, const struct analyze *analyze)
{
	emit_open_array(json, "files");
	for (size_t i = 0; i < analyze->file_count; i++) {
		const struct analyze_file *file = &analyze->files[i];

		emit_open_object(json, NULL);
		emit_string(json, "path", file->path);
		emit_u64(json, "bytes", file->counts.bytes);
		emit_u64(json, "lines", file->counts.lines);
		emit_u64(json, "events", file->counts.events);
		emit_u64(json, "damaged", file->counts.damaged);
		emit_u64(json, "other_lines", file->counts.other);
		emit_bool(json, "frees_known", !analyze_no_frees(file));
		emit_open_array(json, "formats");
		for (size_t f = 0; f < LOG_READER_FORMATS; f++) {
			if (file->counts.of_format[f])
				emit_string(json, NULL,
					    log_reader_format_name((enum log_reader_format)f));
		}
		emit_close_array(json);
		emit_close_object(json);
	}
	emit_close_array(json);
}

static void json_found(struct emit *json, const uint64_t found[LOG_ANALYSIS_KINDS])
{
	emit_u64(json, "double_frees", found[LOG_ANALYSIS_DOUBLE_FREE]);
	emit_u64(json, "unknown_frees", found[LOG_ANALYSIS_UNKNOWN_FREE]);
	emit_u64(json, "size_changes", found[LOG_ANALYSIS_SIZE_CHANGE]);
}

static void json_summary(struct emit *json, const struct analyze *analyze)
{
	const struct analyze_totals *totals = &analyze->totals;

	emit_open_object(json, "summary");
	emit_u64(json, "events", totals->events);
	emit_u64(json, "damaged", totals->damaged);
	emit_bool(json, "frees_known", totals->blind == 0);
	emit_u64(json, "allocs", totals->allocs);
	emit_u64(json, "frees", totals->frees);
	emit_u64(json, "leaks", totals->leaks);
	emit_u64(json, "leaked_bytes", totals->leaked_bytes);
	json_found(json, totals->found);
	emit_u64(json, "reuses", totals->reuses);
	emit_u64(json, "early_frees", totals->early_frees);
	emit_u64(json, "unnamed_left", totals->unnamed);
	emit_u64(json, "unnamed_left_bytes", totals->unnamed_bytes);
	emit_u64(json, "unseen_left", analyze->result.unseen);
	emit_u64(json, "rejected", analyze->result.rejected);
	emit_u64(json, "starts", analyze->result.restarts);
	emit_u64(json, "merged", analyze->result.merged);
	emit_close_object(json);
}

static void json_sum(struct emit *json, uint32_t type, const struct log_analysis_sum *sum)
{
	emit_open_object(json, NULL);
	emit_string(json, "type", analyze_type_name(type));
	emit_u64(json, "allocs", sum->allocs);
	emit_u64(json, "frees", sum->frees);
	emit_u64(json, "bytes", sum->bytes);
	emit_u64(json, "peak_bytes", sum->peak_bytes);
	emit_u64(json, "live", sum->live);
	emit_u64(json, "live_bytes", sum->live_bytes);
	emit_u64(json, "leaks", sum->leaks);
	emit_u64(json, "leaked_bytes", sum->leaked_bytes);
	json_found(json, sum->found);
	emit_u64(json, "reuses", sum->reuses);
	emit_u64(json, "early_frees", sum->early_frees);
	emit_u64(json, "hooked", sum->hooked);
	emit_close_object(json);
}

static void json_devices(struct emit *json, const struct analyze *analyze)
{
	static const struct log_analysis_sum none;

	emit_open_array(json, "devices");
	for (size_t f = 0; f < LOG_READER_FORMATS; f++) {
		for (size_t d = 0; d < BOOK_DEVICES; d++) {
			const struct log_analysis_device *device = analyze->result.devices[f][d];

			if (!device)
				continue;
			emit_open_object(json, NULL);
			emit_string(json, "format",
				    log_reader_format_name((enum log_reader_format)f));
			emit_u64(json, "device", d);
			emit_bool(json, "frees_known",
				  log_reader_format_has_frees((enum log_reader_format)f));
			emit_open_array(json, "types");
			for (uint32_t t = 0; t < LOG_ANALYSIS_TYPES; t++) {
				const struct log_analysis_sum *sum = &device->sums[t];

				if (analyze_wants_type(analyze, t) &&
				    memcmp(sum, &none, sizeof(none)) != 0)
					json_sum(json, t, sum);
			}
			emit_close_array(json);
			emit_close_object(json);
		}
	}
	emit_close_array(json);
}

static void json_pid(struct emit *json, const struct log_analysis_process *process)
{
	if (process->has_pid)
		emit_u64(json, "pid", process->pid);
	else
		emit_null(json, "pid");
}

static void json_processes(struct emit *json, const struct analyze *analyze)
{
	emit_open_array(json, "processes");
	for (size_t i = 0; i < analyze->result.process_count; i++) {
		const struct log_analysis_process *process = &analyze->result.processes[i];

		emit_open_object(json, NULL);
		emit_string(json, "format",
			    log_reader_format_name((enum log_reader_format)process->format));
		json_pid(json, process);
		emit_bool(json, "ended", process->has_ended);
		emit_bool(json, "frees_known",
			  log_reader_format_has_frees((enum log_reader_format)process->format));
		emit_u64(json, "allocs", process->allocs);
		emit_u64(json, "frees", process->frees);
		emit_u64(json, "leaks", process->leaks);
		emit_u64(json, "leaked_bytes", process->leaked_bytes);
		json_found(json, process->found);
		emit_close_object(json);
	}
	emit_close_array(json);
}

/* Each line of @stack is an element; and the one that stands for it. */
static void json_stack(struct emit *json, const char *stack)
{
	const char *all = stack;

	emit_open_array(json, "stack");
	while (stack && *stack) {
		size_t length = strcspn(stack, "\n");
		CLEANUP_FREE char *frame = strndup(stack, length);

		emit_string(json, NULL, frame ? frame : "");
		stack += length + (stack[length] == '\n');
	}
	emit_close_array(json);
	analyze_site_json(json, all);
}

static void json_leaks(struct emit *json, const struct analyze *analyze)
{
	const struct log_analysis_result *result = &analyze->result;
	size_t shown = 0;

	emit_open_array(json, "leaks");
	for (size_t i = 0; i < result->leak_count && json_has_room(analyze, shown); i++) {
		const struct log_analysis_leak *leak = &result->leaks[i];

		if (!analyze_wants_type(analyze, leak->type))
			continue;
		shown++;
		emit_open_object(json, NULL);
		emit_string(json, "format",
			    log_reader_format_name((enum log_reader_format)leak->format));
		emit_u64(json, "device", leak->device);
		json_pid(json, &result->processes[leak->process]);
		emit_string(json, "type", analyze_type_name(leak->type));
		emit_hex(json, "address", leak->address);
		emit_u64(json, "size", leak->size);
		emit_u64(json, "refs", leak->refs);
		emit_string(json, "how",
			    leak->how == LOG_ANALYSIS_PROCESS_ENDED ? "process_ended"
								    : "end_of_log");
		emit_string(json, "path", analyze->files[leak->file].path);
		emit_u64(json, "line", leak->line);
		json_stack(json, analyze_stack(analyze, leak->site));
		emit_close_object(json);
	}
	emit_close_array(json);
}

static void json_size(struct emit *json, const char *key, uint64_t size)
{
	if (size)
		emit_u64(json, key, size);
	else
		emit_null(json, key);
}

static void json_findings(struct emit *json, const struct analyze *analyze)
{
	const struct log_analysis_result *result = &analyze->result;
	size_t shown = 0;

	emit_open_array(json, "findings");
	for (size_t i = 0; i < result->finding_count && json_has_room(analyze, shown); i++) {
		const struct log_analysis_finding *finding = &result->findings[i];

		if (!analyze_wants_type(analyze, finding->type))
			continue;
		shown++;
		emit_open_object(json, NULL);
		emit_string(json, "kind",
			    log_analysis_kind_name((enum log_analysis_kind)finding->kind));
		emit_string(json, "cause",
			    log_analysis_cause_name((enum log_analysis_cause)finding->cause));
		emit_string(json, "format",
			    log_reader_format_name((enum log_reader_format)finding->format));
		emit_u64(json, "device", finding->device);
		json_pid(json, &result->processes[finding->process]);
		emit_string(json, "type", analyze_type_name(finding->type));
		emit_hex(json, "address", finding->address);
		json_size(json, "size", finding->size);
		json_size(json, "other_size", finding->other_size);
		emit_u64(json, "count", finding->count);
		emit_string(json, "path", analyze->files[finding->file].path);
		emit_u64(json, "line", finding->line);
		emit_string(json, "last_path", analyze->files[finding->last_file].path);
		emit_u64(json, "last_line", finding->last_line);
		emit_close_object(json);
	}
	emit_close_array(json);
}

static void json_sites(struct emit *json, const struct analyze *analyze)
{
	size_t count = 0;
	CLEANUP_FREE size_t *order = analyze_sites(analyze, &count);

	emit_open_array(json, "sites");
	for (size_t i = 0; order && i < count && json_has_room(analyze, i); i++) {
		const struct log_analysis_site *site = &analyze->result.sites[order[i]];

		emit_open_object(json, NULL);
		emit_string(json, "format",
			    log_reader_format_name((enum log_reader_format)site->format));
		emit_string(json, "type", analyze_type_name(site->type));
		emit_u64(json, "allocs", site->allocs);
		emit_u64(json, "frees", site->frees);
		emit_u64(json, "replaced", site->replaced);
		emit_u64(json, "bytes", site->bytes);
		emit_u64(json, "leaks", site->leaks);
		emit_u64(json, "leaked_bytes", site->leaked_bytes);
		json_stack(json, analyze_stack(analyze, (uint32_t)order[i]));
		emit_close_object(json);
	}
	emit_close_array(json);
}

void analyze_json(const struct analyze *analyze, uint64_t time_ns)
{
	struct emit json = EMIT_INIT(stdout);

	emit_open_object(&json, NULL);
	emit_string(&json, "schema", "ttmem.analyze/1");
	emit_u64(&json, "time_ns", time_ns);
	json_files(&json, analyze);
	json_summary(&json, analyze);
	json_devices(&json, analyze);
	json_processes(&json, analyze);
	json_leaks(&json, analyze);
	json_findings(&json, analyze);
	json_sites(&json, analyze);
	emit_bool(&json, "exact", analyze->result.is_exact);
	emit_null(&json, "next");
	emit_open_array(&json, "notes");
	if (analyze->totals.blind)
		emit_string(&json, NULL,
			    "where frees_known is false the log has no frees: what was left "
			    "cannot be told");
	if (!analyze->result.is_exact)
		emit_string(&json, NULL,
			    "there is more in these logs than is kept: lists and "
			    "causes may be incomplete");
	emit_close_array(&json);
	emit_close_object(&json);
	emit_end(&json);
}
