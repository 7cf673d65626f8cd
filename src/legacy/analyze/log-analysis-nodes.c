/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The nodes of an analysis: a hash table with chains, because nodes are removed, and two kinds of
 * lists: the live nodes of each process, and the freed ones, of which the oldest is forgotten
 * first. Nodes are referred to by index, so that the array may move.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/hash.h"
#include "legacy/analyze/log-analysis-private.h"

#define NODES_BUCKETS 1024u

void log_analysis_nodes_init(struct log_analysis *analysis)
{
	analysis->unused = analysis->freed_newest = analysis->freed_oldest = LOG_ANALYSIS_NONE;
}

/* The type is not part of it: many frees do not have one. */
static size_t nodes_bucket(const struct log_analysis *analysis, uint32_t process, uint32_t device,
			   uint64_t address)
{
	uint64_t hash = hash_fold(address ^ HASH_K0, analysis->seed | 1);

	hash = hash_fold(hash ^ ((uint64_t)process << 32 | device), analysis->seed ^ HASH_K1);
	return hash & (analysis->bucket_count - 1);
}

static void nodes_link(struct log_analysis *analysis, uint32_t number)
{
	struct log_analysis_node *node = &analysis->nodes[number];
	size_t bucket = nodes_bucket(analysis, node->process, node->device, node->address);

	node->chain = analysis->buckets[bucket];
	analysis->buckets[bucket] = number;
}

static void nodes_unlink(struct log_analysis *analysis, uint32_t number)
{
	const struct log_analysis_node *node = &analysis->nodes[number];
	uint32_t *link = &analysis->buckets[nodes_bucket(analysis, node->process, node->device,
							 node->address)];

	while (*link != number)
		link = &analysis->nodes[*link].chain;
	*link = node->chain;
}

static int nodes_rehash(struct log_analysis *analysis)
{
	size_t count = analysis->bucket_count ? analysis->bucket_count * 2 : NODES_BUCKETS;
	uint32_t *buckets = malloc(count * sizeof(*buckets));

	if (!buckets)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		buckets[i] = LOG_ANALYSIS_NONE;
	free(analysis->buckets);
	analysis->buckets = buckets;
	analysis->bucket_count = count;
	for (size_t i = 0; i < analysis->node_count; i++) {
		if (analysis->nodes[i].state != LOG_ANALYSIS_UNUSED)
			nodes_link(analysis, (uint32_t)i);
	}
	return 0;
}

/* The newest of the list that a node of that state belongs to. */
static uint32_t *nodes_list(struct log_analysis *analysis, const struct log_analysis_node *node)
{
	return node->state == LOG_ANALYSIS_LIVE ? &analysis->processes[node->process].live
						: &analysis->freed_newest;
}

static void nodes_enter(struct log_analysis *analysis, uint32_t number)
{
	struct log_analysis_node *node = &analysis->nodes[number];
	uint32_t *newest = nodes_list(analysis, node);

	node->newer = LOG_ANALYSIS_NONE;
	node->older = *newest;
	if (*newest != LOG_ANALYSIS_NONE)
		analysis->nodes[*newest].newer = number;
	else if (node->state != LOG_ANALYSIS_LIVE)
		analysis->freed_oldest = number;
	*newest = number;
	if (node->state == LOG_ANALYSIS_LIVE)
		analysis->live_count++;
	else
		analysis->freed_count++;
}

static void nodes_leave(struct log_analysis *analysis, uint32_t number)
{
	struct log_analysis_node *node = &analysis->nodes[number];

	if (node->newer != LOG_ANALYSIS_NONE)
		analysis->nodes[node->newer].older = node->older;
	else
		*nodes_list(analysis, node) = node->older;
	if (node->older != LOG_ANALYSIS_NONE)
		analysis->nodes[node->older].newer = node->newer;
	else if (node->state != LOG_ANALYSIS_LIVE)
		analysis->freed_oldest = node->newer;
	if (node->state == LOG_ANALYSIS_LIVE)
		analysis->live_count--;
	else
		analysis->freed_count--;
}

static bool nodes_same_type(uint32_t a, uint32_t b)
{
	return a == b || a == LOG_READER_NO_TYPE || b == LOG_READER_NO_TYPE;
}

/* How well a node of the right place fits. */
static unsigned int nodes_rank(const struct log_analysis_node *node,
			       const struct log_analysis_key *key)
{
	bool same_size = key->has_size && node->size == key->size;

	return (node->state == LOG_ANALYSIS_LIVE    ? 8u
		: node->state == LOG_ANALYSIS_FREED ? 4u
						    : 2u) +
	       same_size;
}

struct log_analysis_node *log_analysis_nodes_find(const struct log_analysis *analysis,
						  const struct log_analysis_key *key)
{
	struct log_analysis_node *best = NULL;
	uint32_t number;

	if (analysis->bucket_count == 0)
		return NULL;
	number = analysis->buckets[nodes_bucket(analysis, key->process, key->device, key->address)];
	while (number != LOG_ANALYSIS_NONE) {
		struct log_analysis_node *node = &analysis->nodes[number];

		if (node->address == key->address && node->process == key->process &&
		    node->device == key->device && nodes_same_type(node->type, key->type) &&
		    (!best || nodes_rank(node, key) > nodes_rank(best, key)))
			best = node;
		number = node->chain;
	}
	return best;
}

/* Memory for a node: one that was used before, else a new one. */
static int nodes_take(struct log_analysis *analysis, uint32_t *ret_number)
{
	struct log_analysis_node *nodes;

	if (analysis->unused != LOG_ANALYSIS_NONE) {
		*ret_number = analysis->unused;
		analysis->unused = analysis->nodes[analysis->unused].chain;
		return 0;
	}
	if (analysis->node_count >= analysis->bucket_count) {
		int r = nodes_rehash(analysis);

		if (r < 0)
			return r;
	}
	nodes = array_grow(analysis->nodes, &analysis->node_capacity, analysis->node_count + 1,
			   sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	analysis->nodes = nodes;
	*ret_number = (uint32_t)analysis->node_count++;
	return 0;
}

int log_analysis_nodes_begin(struct log_analysis *analysis, const struct log_analysis_key *key,
			     struct log_analysis_node **ret_node)
{
	struct log_analysis_node *node = log_analysis_nodes_find(analysis, key);
	uint32_t number, lives = 0;
	int r;

	if (analysis->live_count >= LOG_ANALYSIS_LIVE_MAX)
		return -ENOSPC;
	/* A freed node becomes live again; another type at the same address is another node. */
	if (node && node->state != LOG_ANALYSIS_LIVE && node->type == key->type) {
		number = (uint32_t)(node - analysis->nodes);
		lives = node->lives;
		nodes_leave(analysis, number);
	} else {
		r = nodes_take(analysis, &number);
		if (r < 0)
			return r;
		node = &analysis->nodes[number];
		*node = (struct log_analysis_node){
			.address = key->address,
			.process = key->process,
			.device = (uint16_t)key->device,
			.type = (uint8_t)key->type,
		};
		nodes_link(analysis, number);
	}
	node->state = LOG_ANALYSIS_LIVE;
	node->lives = lives + (lives < UINT32_MAX);
	node->refs = 1;
	node->ghosts = 0;
	nodes_enter(analysis, number);
	*ret_node = node;
	return 0;
}

void log_analysis_nodes_end(struct log_analysis *analysis, struct log_analysis_node *node,
			    enum log_analysis_state state)
{
	uint32_t number = (uint32_t)(node - analysis->nodes);
	uint32_t oldest;

	nodes_leave(analysis, number);
	node->state = (uint8_t)state;
	node->refs = 0;
	nodes_enter(analysis, number);
	if (analysis->freed_count <= LOG_ANALYSIS_FREED_MAX)
		return;
	oldest = analysis->freed_oldest;
	nodes_leave(analysis, oldest);
	nodes_unlink(analysis, oldest);
	analysis->nodes[oldest].state = LOG_ANALYSIS_UNUSED;
	analysis->nodes[oldest].chain = analysis->unused;
	analysis->unused = oldest;
	analysis->forgotten++;
}
