/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The JSON documents, as docs/schema/ describes them; the same on the command line and over HTTP.
 * Every document has schema, time_ns, exact, next and notes; all seven types are always present and
 * never folded.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ending.h"
#include "model/sites/group.h"

struct by_user;
struct filter;
struct frame;
struct stack;
struct growth;
struct history;
struct emit;
struct site;
struct snapshot;
struct snapshot_buffer;
struct snapshot_incident;
struct snapshot_party;
struct snapshot_peak;
struct snapshot_process;
struct snapshot_reach;
struct snapshot_recording;

/*
 * Writes "command" and "command_cut" into the object of a process, or nothing if it is not for whoever
 * reads the document: they are details.
 */
struct document_commands {
	void (*write)(struct document_commands *commands, struct emit *json,
		      const struct snapshot_process *process);
};

/*
 * Devices and processes; @filter selects devices (and thereby processes). @commands: NULL = without
 * command lines, as for everybody.
 */
void document_smi(struct emit *json, const struct snapshot *snapshot, const struct filter *filter,
		  struct document_commands *commands);

/* The same, and what each user holds. @users: NULL = without that. */
void document_smi_users(struct emit *json, const struct snapshot *snapshot,
			const struct filter *filter, struct document_commands *commands,
			const struct by_user *users);
void document_users(struct emit *json, const struct snapshot *snapshot,
		    const struct by_user *users);

/* Processes with all counters; @filter and @commands as above. */
void document_ps(struct emit *json, const struct snapshot *snapshot, const struct filter *filter,
		 struct document_commands *commands);
void document_cards(struct emit *json, const struct snapshot *snapshot);

/* What was live at each peak; and one of its rows. 0 or -ENOMEM. */
int document_peaks(struct emit *json, const struct snapshot *snapshot, enum group_kind kind);
int document_peak_row(struct emit *json, const char *key, const struct snapshot *snapshot,
		      const struct snapshot_peak *peak, enum group_kind kind);
void document_growth(struct emit *json, const struct snapshot *snapshot,
		     const struct growth *growth);
void document_growth_sites(struct emit *json, const struct growth *growth); /* its rows alone */
/* The daemon's record of an address: rows of the leaks and incidents documents, as JSON arrays. */
struct document_past {
	const char *leaks;
	const char *incidents;
};

/* @past: NULL = there was no daemon to ask. */
void document_history(struct emit *json, const struct snapshot *snapshot,
		      const struct history *history, uint64_t address,
		      const struct document_past *past);

/* Parts of documents. */
void document_open(struct emit *json, const char *schema, uint64_t time_ns);
/* The same, with the recording that the snapshot is of, if it is of one. */
void document_open_at(struct emit *json, const char *schema, const struct snapshot *snapshot);
/* "recording"; null if its file is not known. */
void document_recording(struct emit *json, const struct snapshot_recording *recording);
/* And with "moment": the moment of the past that it is of, or null. */
void document_open_moment(struct emit *json, const char *schema, const struct snapshot *snapshot);
/* "exact_from_ns" and "sums_from_ns". */
void document_reach(struct emit *json, const struct snapshot_reach *reach);
void document_list_end(struct emit *json, bool exact); /* "exact" and "next" of a complete list */
void document_page_end(struct emit *json, bool exact, const char *next); /* NULL = the last one */
void document_close(struct emit *json, const struct snapshot *snapshot);
void document_close_bare(struct emit *json); /* of a document without notes */
void document_exit(struct emit *json, const struct ending *ending); /* "exit" */

/* Who it was and how it ended: the members that ttmem.leaks/1 and ttmem.ended/1 have in common. */
void document_ended(struct emit *json, const struct snapshot_process *process,
		    const struct ending *ending);
void document_uid(struct emit *json, const char *key, uint64_t unique_id);
void document_flags(struct emit *json, uint32_t flags);
const char *document_bound(uint32_t bound);
