/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the parts of push.c. */

#include <stddef.h>
#include <stdint.h>

#include "web/exposition.h"

struct push_incident {
	uint64_t time_ns;
	char *kind;
	char *json;
	uint32_t pid;
	uint32_t device;
};

void push_incident_deinit(struct push_incident *incident);

/* An ExportLogsServiceRequest. 0 or -ENOMEM. */
int push_message_logs(const struct exposition_origin *origin, const struct push_incident *incidents,
		      size_t count, char **ret_text, size_t *ret_length);

enum push_outcome {
	PUSH_TAKEN,
	PUSH_AWAY,    /* not reached, or asked for patience */
	PUSH_REFUSED, /* it will never like this */
};

struct push_post;

int push_post_new(struct push_post **ret_post, const char *url, const char *headers,
		  const char **ret_problem);
struct push_post *push_post_free(struct push_post *post);

/* One message; takes ten seconds at most. */
enum push_outcome push_post_send(struct push_post *post, const char *path, const char *text,
				 size_t length);

/* From another thread: what is being sent ends at once, and nothing is sent any more. */
void push_post_stop(struct push_post *post);
