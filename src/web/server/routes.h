/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The routes: each answer, who may ask for it, and the function that makes it. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "web/server/url.h"

struct snapshot;
struct web;
struct query_asker;
struct sign_in;
struct web_provider;

/* Which thread makes the answer. */
enum routes_lane {
	ROUTES_AT_ONCE, /* the one that serves the sockets: must not block */
	ROUTES_TOTALS,
	ROUTES_DETAILS,
	ROUTES_FLEET,  /* waits for other machines */
	ROUTES_STREAM, /* endless: see stream.h */
	ROUTES_ASSET,  /* built in: see assets.h */
};

/* Refusals, by their HTTP status. */
enum routes_outcome {
	ROUTES_UNAUTHORIZED = 401,
	ROUTES_FORBIDDEN = 403,
	ROUTES_UNAVAILABLE = 503,
};

/* One request, for the function that answers it. */
struct routes_ask {
	const struct web_provider *provider;
	struct web *web;                 /* the server; NULL on the daemon's own socket */
	const struct query_asker *asker; /* NULL over TCP, unless a browser is signed in */
	struct sign_in *sign_in;         /* over TCP: for signing in and out */
	struct snapshot *snapshot;       /* taken for this request alone, owned; NULL = none */
	struct url *url;
	struct query *query; /* the URL's */
	bool sees_all;       /* details of everybody: with the token, or as who it is */
	uint64_t arrived_ns; /* CLOCK_MONOTONIC */
	uint32_t device;     /* from the path */
	bool openmetrics;    /* preferred by the client */
};

struct route {
	const char *type; /* content type */
	const char *type_openmetrics;
	/*
	 * 0; -EINVAL, -ENODATA or a routes_outcome, and url->problem; -ENOENT; -EAGAIN: not at present; or
	 * another negative errno. Unless it is 0, the output is discarded.
	 */
	int (*make)(struct routes_ask *ask, FILE *out);
	enum routes_lane lane;
	bool guarded; /* anonymous clients need the token; others must see all, unless it is scoped */
	bool scoped;     /* shows each client its own */
	bool takes_turn; /* of its user, as every request for a moment of the past: QUOTA_MOMENTS */
	bool local;      /* only on the daemon's own socket */
	bool tcp;        /* only over TCP: about the server */
	bool post;       /* changes something: POST, where all others are GET */
};

/* For clients that do not see all. */
#define ROUTES_ALL_ONLY "only root and members of the daemon's group may ask for this"

#define ROUTES_JSON "application/json"
#define ROUTES_TEXT "text/plain; charset=utf-8"

/* NULL: no such path. */
const struct route *routes_find(const char *path, uint32_t *ret_device);

/* The parameters that it takes: enum query_field. */
uint32_t routes_honours(const struct route *route);

/*
 * The HTTP status for a result of route->make(), and a text for people that lives as long as @url.
 */
unsigned int routes_explain(int error, const struct url *url, const char **ret_problem);
