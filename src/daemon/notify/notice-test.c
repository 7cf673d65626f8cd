/* SPDX-License-Identifier: Apache-2.0 */

/* Notices: what they say of stacks. */

#include "daemon/notify/notice.h"

#include <string.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "model/types.h"

static struct snapshot *snapshot_of_one(void)
{
	struct snapshot_process process = {
		.id.pid = 7, .comm = "train", .user = "me", .source = "book", .books = 1};
	struct snapshot *snapshot = snapshot_new(1000);
	uint32_t index;

	assert(snapshot && snapshot_add_process(snapshot, &process, &index) == 0 && index == 0);
	assert(snapshot_part(snapshot, 0, 0));
	return snapshot;
}

UNIT(an_incident_has_the_stack_of_who_did_it)
{
	struct snapshot *snapshot = snapshot_of_one();
	struct snapshot_incident incident = {
		.kind = "double_free",
		.first = {.known = true, .stack = testing_stack("main.c:1:other")},
		.second = {.known = true,
			   .stack = testing_stack("a.c:9:main -> x/a.c:5:drop @ app -> app+0x12")},
	};
	struct notice *notice = notice_new_incident(snapshot, &incident, 1);

	assert(notice);
	assert(strcmp(notice->stack, "app+0x12 <- drop (x/a.c:5) <- main (a.c:9)") == 0);
	assert(strcmp(notice->site, "drop (a.c:5)") == 0);
	assert(strcmp(notice->function, "drop") == 0 && strcmp(notice->file, "x/a.c") == 0);
	assert(notice->line == 5 && strcmp(notice->user_name, "me") == 0);
	notice_free(notice);
	incident.second.known = false;
	notice = notice_new_incident(snapshot, &incident, 1);
	assert(notice && strcmp(notice->stack, "other (main.c:1)") == 0);
	notice_free(notice);
	/* An address is no name of a function. */
	incident.first.stack = testing_stack("app+0x12 @ app");
	notice = notice_new_incident(snapshot, &incident, 1);
	assert(notice && notice->site && !notice->function && !notice->file && !notice->line);
	notice_free(notice);
	incident.first.known = false;
	incident.first.stack = NULL;
	notice = notice_new_incident(snapshot, &incident, 1);
	assert(notice && !notice->stack && !notice->site);
	notice_free(notice);
	snapshot_free(snapshot);
}

UNIT(a_notice_knows_who_may_see_it)
{
	struct snapshot *snapshot = snapshot_of_one();
	struct snapshot_incident incident = {.kind = "double_free"};
	struct notice *notice = notice_new_incident(snapshot, &incident, 1);

	/* "" would be: in our namespaces. */
	assert(notice && !notice->namespaces);
	notice_free(notice);
	snapshot->processes[0].maker_id = 1000;
	snapshot->processes[0].user_id = 1001;
	snapshot->processes[0].namespaces = "|abc/1";
	notice = notice_new_incident(snapshot, &incident, 1);
	assert(notice && notice->maker == 1000 && strcmp(notice->namespaces, "|abc/1") == 0);
	notice_free(notice);
	snapshot_free(snapshot);
}

UNIT(a_leak_has_the_stack_of_its_first_buffer)
{
	const struct ending ending = {.ended_ns = 1000};
	struct snapshot *snapshot = snapshot_of_one();
	struct snapshot_buffer buffer = {
		.size = 64, .refs = 1, .stack = testing_stack("a.c:3:keep")};
	struct notice *notice;

	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	buffer.stack = testing_stack("a.c:4:more");
	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	notice = notice_new_leak(snapshot, 0, &ending);
	assert(notice && strcmp(notice->stack, "keep (a.c:3)") == 0);
	notice_free(notice);
	snapshot_free(snapshot);
}

UNIT(a_leak_of_one_type_names_it)
{
	const struct ending ending = {.ended_ns = 1000};
	struct snapshot *snapshot = snapshot_of_one();
	struct snapshot_part *part = snapshot_part(snapshot, 0, 0);
	struct notice *notice;

	part->memory[TYPES_CB].buffers = 2;
	notice = notice_new_leak(snapshot, 0, &ending);
	assert(notice && notice->type == TYPES_CB);
	notice_free(notice);
	part->memory[TYPES_KERNEL].buffers = 1;
	notice = notice_new_leak(snapshot, 0, &ending);
	assert(notice && notice->type == SNAPSHOT_TYPE_NONE);
	notice_free(notice);
	snapshot_free(snapshot);
}
