/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A report for ttnn-visualizer: a folder with db.sqlite, whose tables are those of schema 3.3, as tt-metal's
 * own importer makes them. ttnn-visualizer looks which of them there are, so all are there, even if this
 * exporter knows nothing to put into them.
 *
 * A column that is not known is 0 for devices, as tt-metal has it, and NULL elsewhere.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/must.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/export/export.h"
#include "cli/export/format/export-trace.h"
#include "cli/export/visualizer/export-db.h"
#include "cli/export/visualizer/export-folder.h"
#include "model/cards/card.h"
#include "model/memory/free-blocks.h"
#include "model/snapshot.h"
#include "model/types.h"

#define VISUALIZER_FILE "db.sqlite"
#define VISUALIZER_SCHEMA "3.3"
#define VISUALIZER_STRIDE 4096u /* rows between looks at the clock and for Ctrl-C */

/* SQLite's header: what it is, and whose. */
#define VISUALIZER_MAGIC "SQLite format 3"
#define VISUALIZER_HEADER 100u
#define VISUALIZER_ID_AT 68u
#define VISUALIZER_ID 0x74746d65u /* "ttme", see PRAGMA application_id */

#define RANK ", rank int NOT NULL DEFAULT 0"

static const char visualizer_tables[] =
	"CREATE TABLE report_metadata (key text UNIQUE, value text);"
	"CREATE TABLE devices (device_id int, num_y_cores int, num_x_cores int, "
	"num_y_compute_cores int,"
	" num_x_compute_cores int, worker_l1_size int, l1_num_banks int, l1_bank_size int,"
	" address_at_first_l1_bank int, address_at_first_l1_cb_buffer int,"
	" num_banks_per_storage_core int, num_compute_cores int, num_storage_cores int,"
	" total_l1_memory int, total_l1_for_tensors int, total_l1_for_interleaved_buffers int,"
	" total_l1_for_sharded_buffers int, cb_limit int" RANK ");"
	"CREATE TABLE operations (operation_id int, name text, duration float" RANK
	", UNIQUE(operation_id, rank));"
	"CREATE TABLE operation_arguments (operation_id int, name text, value text" RANK ");"
	"CREATE TABLE buffers (operation_id int, device_id int, address int, max_size_per_bank int,"
	" buffer_type int, buffer_layout int" RANK ");"
	"CREATE TABLE buffer_chunks (operation_id int, device_id int, address int, bank_id int,"
	" core_x int, core_y int, chunk_address int, chunk_size int, page_size int, num_pages int,"
	" buffer_type int" RANK ");"
	"CREATE TABLE source_files (id INTEGER PRIMARY KEY, path text UNIQUE NOT NULL, contents "
	"text);"
	"CREATE TABLE stack_traces (operation_id int, stack_trace text,"
	" source_file_id int REFERENCES source_files(id)" RANK ");"
	"CREATE INDEX idx_stack_traces_source_file_id ON stack_traces (source_file_id);"
	"CREATE TABLE errors (operation_id int, operation_name text, error_type text,"
	" error_message text, stack_trace text, timestamp text" RANK ");"
	"CREATE TABLE tensors (tensor_id int, shape text, dtype text, layout text, memory_config "
	"text,"
	" device_id int, address int, buffer_type int" RANK ", UNIQUE(tensor_id, rank));"
	"CREATE TABLE device_tensors (tensor_id int, device_id int, address int" RANK ");"
	"CREATE TABLE input_tensors (operation_id int, input_index int, tensor_id int" RANK ");"
	"CREATE TABLE output_tensors (operation_id int, output_index int, tensor_id int" RANK ");"
	"CREATE TABLE tensor_lifetime (tensor_id int, producer_operation_id int,"
	" last_use_operation_id int, deallocate_operation_id int, producer_source_file text,"
	" producer_source_line int, last_use_source_file text, last_use_source_line int" RANK
	", UNIQUE(tensor_id, rank));"
	"CREATE TABLE tensor_consumers (tensor_id int, operation_id int, input_index int" RANK
	", UNIQUE(tensor_id, operation_id, input_index, rank));"
	"CREATE TABLE tensor_producers (tensor_id int, operation_id int, output_index int" RANK
	", UNIQUE(tensor_id, operation_id, output_index, rank));"
	"CREATE TABLE local_tensor_comparison_records (tensor_id int, golden_tensor_id int,"
	" matches int, desired_pcc float, actual_pcc float" RANK ", UNIQUE(tensor_id, rank));"
	"CREATE TABLE global_tensor_comparison_records (tensor_id int, golden_tensor_id int,"
	" matches int, desired_pcc float, actual_pcc float" RANK ", UNIQUE(tensor_id, rank));"
	"CREATE TABLE captured_graph (operation_id int, captured_graph text" RANK ");"
	"CREATE TABLE nodes (operation_id int, unique_id int, node_operation_id int, name text" RANK
	");"
	"CREATE TABLE edges (operation_id int, source_unique_id int, sink_unique_id int,"
	" source_output_index int, sink_input_index int, key int" RANK ");";

static const struct snapshot_process *visualizer_process(const struct export_job *job)
{
	return &job->snapshot->processes[job->process];
}

static int visualizer_write_metadata(const struct export_job *job, struct export_db *db)
{
	const struct snapshot_process *process = visualizer_process(job);
	uint64_t begin = job->operations.list[0].begin_ns, now = job->snapshot->time_ns;
	char time[24], duration[24], version[32], pid[16];
	const char *const rows[][2] = {
		{"schema_version", VISUALIZER_SCHEMA},
		{"capture_timestamp_ns", time},
		{"total_duration_ns", duration},
		{"generator", version},
		{"pid", pid},
		{"command", process->comm},
	};
	int r = 0;

	snprintf(time, sizeof(time), "%" PRIu64, now);
	snprintf(duration, sizeof(duration), "%" PRIu64, now > begin ? now - begin : 0);
	snprintf(version, sizeof(version), "ttmem %d.%d.%d", TTMEM_VERSION_MAJOR,
		 TTMEM_VERSION_MINOR, TTMEM_VERSION_PATCH);
	snprintf(pid, sizeof(pid), "%" PRIu32, process->id.pid);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++)
		r = export_db_insert(
			db, "report_metadata",
			EXPORT_VALUES(EXPORT_TEXT(rows[i][0]), EXPORT_TEXT(rows[i][1])));
	return r;
}

static const struct card_facts *visualizer_card(const struct export_job *job,
						const struct snapshot_part *part)
{
	return card_find(part->facts.card ? part->facts.card
					  : job->snapshot->devices[part->row].card);
}

static int visualizer_write_device(const struct export_job *job, const struct snapshot_part *part,
				   struct export_db *db)
{
	const struct snapshot_window *l1 = &part->facts.windows[TYPES_L1];
	const struct card_facts *card = visualizer_card(job, part);
	uint64_t worker = part->facts.l1_per_core, total = part->facts.capacity[TYPES_L1];
	struct export_value none = export_int(0);

	if (!worker && card)
		worker = card->l1_per_core;
	if (!total)
		total = card_capacity(card, TYPES_L1);
	return export_db_insert(
		db, "devices",
		EXPORT_VALUES(export_int(part->device), none, none, none, none, export_int(worker),
			      export_int(l1->banks), export_int(l1->size), none,
			      export_int(l1->base), none, none, none, export_int(total), none,
			      export_int(l1->banks * l1->size), none,
			      export_int(worker > l1->base ? worker - l1->base : 0), none));
}

static int visualizer_write_devices(const struct export_job *job, struct export_db *db)
{
	const struct snapshot_process *process = visualizer_process(job);
	int r = 0;

	for (size_t i = 0; r == 0 && i < process->part_count; i++)
		r = visualizer_write_device(job, &process->parts[i], db);
	return r;
}

static const char *visualizer_name(const struct export_operation *operation, char *text,
				   size_t size)
{
	if (operation->merged)
		snprintf(text, size, "(%zu earlier operations)", operation->merged);
	else
		snprintf(text, size, "(no phase)");
	return operation->name ? operation->name : text;
}

static int visualizer_write_arguments(const struct export_operation *operation, uint64_t id,
				      struct export_db *db)
{
	const char *kind = operation->is_mark ? "mark" : operation->merged ? "merged" : "phase";
	char begin[24], born[24];
	const char *const rows[][2] = {
		{"ttmem.kind", kind},
		{"ttmem.phase", operation->phase},
		{"ttmem.begin_ns", begin},
		{"ttmem.born", born},
	};
	int r = 0;

	snprintf(begin, sizeof(begin), "%" PRIu64, operation->begin_ns);
	snprintf(born, sizeof(born), "%" PRIu64, operation->born);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++) {
		if (rows[i][1])
			r = export_db_insert(db, "operation_arguments",
					     EXPORT_VALUES(export_int(id), EXPORT_TEXT(rows[i][0]),
							   EXPORT_TEXT(rows[i][1]), export_int(0)));
	}
	return r;
}

/* An operation lasts until the next one begins, the last one until now. */
static int visualizer_write_operations(const struct export_job *job, struct export_db *db)
{
	const struct export_operations *operations = &job->operations;
	int r = 0;

	for (size_t i = 0; r == 0 && i < operations->count; i++) {
		const struct export_operation *operation = &operations->list[i];
		uint64_t end =
			i + 1 < operations->count ? operation[1].begin_ns : job->snapshot->time_ns;
		uint64_t ns = end > operation->begin_ns ? end - operation->begin_ns : 0;
		char text[64];

		r = export_db_insert(
			db, "operations",
			EXPORT_VALUES(export_int(i + 1),
				      EXPORT_TEXT(visualizer_name(operation, text, sizeof(text))),
				      EXPORT_REAL((double)ns / 1e9), export_int(0)));
	}
	for (size_t i = 0; r == 0 && i < operations->count; i++)
		r = visualizer_write_arguments(&operations->list[i], i + 1, db);
	return r;
}

/* The size in each bank; a buffer of a memory whose banks are not known is taken as if in one. */
static uint64_t visualizer_share(const struct export_job *job, const struct snapshot_buffer *buffer)
{
	const struct snapshot_part *part =
		snapshot_find_part(job->snapshot, buffer->process, buffer->device);
	uint64_t share = buffer->size_per_bank;

	if (!share && part)
		share = free_blocks_share(job->snapshot, part, buffer);
	return share ? share : buffer->size;
}

static void visualizer_count_guesses(struct export_job *job)
{
	for (size_t i = 0; i < job->operations.buffer_count; i++) {
		const struct snapshot_buffer *buffer = job->operations.buffers[i];
		const struct snapshot_part *part =
			snapshot_find_part(job->snapshot, buffer->process, buffer->device);

		job->guessed += buffer->size_per_bank == 0;
		job->unbanked += !part || !free_blocks_share(job->snapshot, part, buffer);
	}
}

static int visualizer_write_buffer(const struct export_job *job, uint64_t id,
				   const struct snapshot_buffer *buffer, struct export_db *db)
{
	return export_db_insert(db, "buffers",
				EXPORT_VALUES(export_int(id), export_int(buffer->device),
					      export_int(buffer->address),
					      export_int(visualizer_share(job, buffer)),
					      export_int(buffer->type), EXPORT_NULL,
					      export_int(0)));
}

static int visualizer_write_buffers(struct export_job *job, struct export_db *db)
{
	const struct export_operations *operations = &job->operations;
	struct progress progress = {.total = export_operations_rows(operations), .unit = "row"};
	int r = 0;

	for (size_t i = 0; r == 0 && i < operations->count; i++) {
		for (uint64_t k = 0; r == 0 && k < operations->list[i].live; k++) {
			r = visualizer_write_buffer(job, i + 1, operations->buffers[k], db);
			if (r == 0 && ++progress.done % VISUALIZER_STRIDE == 0) {
				progress_draw(&progress);
				r = output_is_stopped() ? -EINTR : 0;
			}
		}
	}
	progress_end(&progress);
	job->rows = progress.done;
	return r;
}

/* The file's row; 0 = its contents cannot be had. A file that was asked for before has one already. */
static int visualizer_write_source(struct export_job *job, const char *path, struct export_db *db,
				   uint64_t *ret_id)
{
	CLEANUP_FREE char *text = NULL;
	int r = export_sources_read(&job->sources, path, &text);

	*ret_id = 0;
	if (r < 0)
		return 0;
	*ret_id = ++job->file_count;
	return export_db_insert(
		db, "source_files",
		EXPORT_VALUES(export_int(*ret_id), EXPORT_TEXT(path), EXPORT_TEXT(text)));
}

/* Of the operations before the @i-th, one whose stack begins in the same file; @i if there is none. */
static size_t visualizer_find_source(char *const *paths, size_t i)
{
	size_t k = 0;

	while (k < i && !(paths[k] && strcmp(paths[k], paths[i]) == 0))
		k++;
	return k;
}

static int visualizer_write_traces(struct export_job *job, struct export_db *db)
{
	size_t count = job->operations.count;
	char **paths = must_alloc(count, sizeof(*paths));
	CLEANUP_FREE uint64_t *ids = must_alloc(count, sizeof(*ids));
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct snapshot_buffer *buffer = job->operations.list[i].largest;
		CLEANUP_FREE char *text = NULL;
		size_t same = i;

		if (!buffer)
			continue;
		text = export_trace(buffer->stack, &paths[i]);
		if (paths[i])
			same = visualizer_find_source(paths, i);
		if (paths[i] && same == i)
			r = visualizer_write_source(job, paths[i], db, &ids[i]);
		ids[i] = ids[same];
		if (r == 0)
			r = export_db_insert(
				db, "stack_traces",
				EXPORT_VALUES(export_int(i + 1), EXPORT_TEXT(text),
					      ids[i] ? export_int(ids[i]) : EXPORT_NULL,
					      export_int(0)));
	}
	for (size_t i = 0; i < count; i++)
		free(paths[i]);
	free(paths);
	return r;
}

static int visualizer_fill(struct export_job *job, struct export_db *db)
{
	char sql[64];
	int r;

	snprintf(sql, sizeof(sql), "PRAGMA application_id=%u", VISUALIZER_ID);
	r = export_db_execute(db, sql);
	if (r == 0)
		r = export_db_execute(db, visualizer_tables);
	if (r == 0)
		r = visualizer_write_metadata(job, db);
	if (r == 0)
		r = visualizer_write_devices(job, db);
	if (r == 0)
		r = visualizer_write_operations(job, db);
	if (r == 0)
		r = visualizer_write_traces(job, db);
	if (r == 0)
		r = visualizer_write_buffers(job, db);
	return r == 0 ? export_db_commit(db) : r;
}

static int visualizer_write(struct export_job *job)
{
	CLEANUP(export_db_free) struct export_db *db = NULL;
	int r = export_operations_limit(&job->operations, job->rows_max);

	if (r < 0) {
		snprintf(job->problem, sizeof(job->problem),
			 "%zu live buffers are more than %" PRIu64
			 " rows; choose some with --device or --type, or allow more with --rows",
			 job->operations.buffer_count, job->rows_max);
		return r;
	}
	visualizer_count_guesses(job);
	r = export_db_create(&db, job->folder, VISUALIZER_FILE);
	if (r == 0)
		r = visualizer_fill(job, db);
	if (r == -ENOSYS)
		snprintf(job->problem, sizeof(job->problem),
			 "it needs SQLite, and there is no libsqlite3.so.0");
	else if (r == -EIO && db)
		snprintf(job->problem, sizeof(job->problem), VISUALIZER_FILE ": %s",
			 export_db_message(db));
	return r;
}

static bool visualizer_is_report(int folder)
{
	CLEANUP_CLOSE int fd = openat(folder, VISUALIZER_FILE,
				      O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	uint8_t header[VISUALIZER_HEADER], *id = header + VISUALIZER_ID_AT;

	return fd >= 0 && read(fd, header, sizeof(header)) == sizeof(header) &&
	       memcmp(header, VISUALIZER_MAGIC, sizeof(VISUALIZER_MAGIC)) == 0 &&
	       ((uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3]) ==
		       VISUALIZER_ID &&
	       export_folder_has_only(folder, VISUALIZER_FILE);
}

const struct export_format export_visualizer = {
	.name = "ttnn-visualizer",
	.write = visualizer_write,
	.is_report = visualizer_is_report,
};
