/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of push.c. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "web/export/exposition.h"

struct push_config;
struct push_post;
struct web_incident;

/* Texts of an incident, which it owns. Only the first two are always there. */
enum push_text {
	PUSH_JSON,
	PUSH_KIND,
	PUSH_COMM,
	PUSH_USER_NAME,
	PUSH_SITE,
	PUSH_FUNCTION,
	PUSH_FILE,
	PUSH_TEXTS,
};

struct push_incident {
	uint64_t time_ns;
	char *texts[PUSH_TEXTS]; /* NULL = not known */
	const char *type;        /* static; NULL = several, or not known */
	uint64_t bytes, buffers, count;
	uint32_t pid;
	uint32_t user;
	uint32_t device;
	uint32_t line; /* 0 = not known */
};

/* Copies what is told. False: it is too long, or there is no memory; deinit it in any case. */
bool push_incident_init(struct push_incident *incident, const struct web_incident *told);
void push_incident_deinit(struct push_incident *incident);

/* An ExportLogsServiceRequest. 0 or -ENOMEM. */
int push_message_logs(const struct exposition_origin *origin, const struct push_incident *incidents,
		      size_t count, char **ret_text, size_t *ret_length);

/* push-pairs.c: the next of "name=value,..."; modifies the text. 1, 0 = no more, or -EINVAL. */
int push_pairs_next(char **rest, const char **ret_name, const char **ret_value);

/*
 * push-answer.c: how many of @sent points or records were rejected in a message that was accepted.
 */
uint64_t push_answer_rejected(const char *text, size_t length, uint64_t sent);

enum push_outcome {
	PUSH_TAKEN,
	PUSH_AWAY,    /* unreachable, or asked us to wait */
	PUSH_REFUSED, /* will never be accepted */
};

#define PUSH_ANSWER_MAX (UINT32_C(64) << 10) /* of an answer; the rest is not read */

/* The outcome of one message. The texts are valid until the next one. */
struct push_result {
	enum push_outcome outcome;
	uint32_t patience_s; /* away: how long to wait, if it said so; else 0 */
	const char *answer;  /* accepted: its answer */
	size_t answer_length;
	const char *problem; /* not accepted: why, for people */
};

int push_post_new(struct push_post **ret_post, const struct push_config *config,
		  const char **ret_problem);
struct push_post *push_post_free(struct push_post *post);

/* One message; takes ten seconds at most. */
void push_post_send(struct push_post *post, const char *path, const char *text, size_t length,
		    struct push_result *ret_result);

/* From another thread: whatever is being sent ends within @ms, and nothing is sent after that. */
void push_post_stop(struct push_post *post, uint32_t ms);
