/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An 8B language model (the shapes of Llama 3.1 8B, weights in bfloat8) answers requests.
 *
 * The model is split evenly over the chips of the card. Weights come first, layer by layer. Each
 * request then fills a KV cache with its prompt and extends it while tokens are generated; every op
 * allocates its output in L1 and circular buffers while it runs, and loads its kernels when it runs
 * for the first time. After the first token the run is captured as a trace.
 */

#include <stdio.h>
#include <ttmem/ttmem.h>

#include "sim/pile.h"
#include "sim/workload.h"

#define KIB UINT64_C(1024)

#define CHIPS_MAX 8u  /* the model is too small for more */
#define TILE 32u      /* rows and columns of a tile */
#define TILE_BF8 1088 /* bytes: 1024 mantissas and 64 shared exponents */
#define TILE_BF16 2048

#define DIM 4096u
#define HIDDEN 14336u
#define KV_DIM 1024u
#define VOCABULARY 128256u
#define LAYERS 32u
#define BATCH 32u

#define KV_BLOCK 32u /* tokens by which the KV cache grows */

struct weight {
	const char *name;
	uint32_t rows;
	uint32_t columns;
	uint32_t tile; /* bytes */
};

static const struct weight layer_weights[] = {
	{"attention_norm", TILE, DIM, TILE_BF16},   {"attention.wq", DIM, DIM, TILE_BF8},
	{"attention.wk", DIM, KV_DIM, TILE_BF8},    {"attention.wv", DIM, KV_DIM, TILE_BF8},
	{"attention.wo", DIM, DIM, TILE_BF8},       {"ffn_norm", TILE, DIM, TILE_BF16},
	{"feed_forward.w1", DIM, HIDDEN, TILE_BF8}, {"feed_forward.w2", HIDDEN, DIM, TILE_BF8},
	{"feed_forward.w3", DIM, HIDDEN, TILE_BF8},
};

static const struct weight model_weights[] = {
	{"tok_embeddings", VOCABULARY, DIM, TILE_BF16},
	{"norm", TILE, DIM, TILE_BF16},
	{"output", DIM, VOCABULARY, TILE_BF8},
};

struct op {
	const char *name;
	uint32_t columns; /* of its output, one row per sequence */
	uint32_t in_kib;  /* circular buffers on each core */
	uint32_t weight_kib;
	uint32_t kernel_kib; /* code of its compute kernel */
};

static const struct op ops[] = {
	{"attention_norm", DIM, 16, 8, 6},
	{"attention.qkv", DIM + 2 * KV_DIM, 32, 136, 14},
	{"attention.rotary", DIM, 16, 16, 5},
	{"attention.sdpa", DIM, 64, 96, 22},
	{"attention.wo", DIM, 32, 136, 14},
	{"ffn_norm", DIM, 16, 8, 6},
	{"feed_forward.w1_w3", HIDDEN, 32, 204, 16},
	{"feed_forward.w2", DIM, 56, 136, 14},
};

#define OP_COUNT (sizeof(ops) / sizeof(ops[0]))

struct llm {
	struct workload_context *context;
	struct workload_devices devices;
	struct sim_pile model;       /* lives as long as the model: weights, kernels, trace */
	struct sim_pile kv;          /* lives as long as a request */
	struct sim_pile activations; /* the output of the last op, one on each chip */
	uint32_t layers;
	uint32_t kv_tokens; /* capacity of kv */
	bool op_loaded[OP_COUNT];
	bool captured;
};

static uint64_t tiles(uint64_t rows, uint64_t columns)
{
	return (rows / TILE) * (columns / TILE);
}

/* Allocates the same on every chip. size is what one chip holds. */
static int alloc_everywhere(struct llm *llm, struct sim_pile *pile,
			    const struct sim_request *request)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < llm->devices.n; i++)
		r = sim_pile_alloc(pile, &llm->devices.device[i], request, NULL);
	return r;
}

/* The part of a tensor that each chip holds. */
static uint64_t share(const struct llm *llm, uint64_t n_tiles, uint64_t tile)
{
	return workload_size(llm->context, n_tiles * tile / llm->devices.n, tile);
}

static int load_weight(struct llm *llm, const struct weight *weight, const char *prefix)
{
	char name[64];
	struct sim_request request = {
		.type = TTMEM_DRAM,
		.size = share(llm, tiles(weight->rows, weight->columns), weight->tile),
		.page_size = weight->tile,
		.name = name,
	};

	(void)snprintf(name, sizeof(name), "%s%s", prefix, weight->name);
	return alloc_everywhere(llm, &llm->model, &request);
}

/* What the runtime allocates for itself, before there is any model. */
static int load_runtime(struct llm *llm)
{
	static const struct sim_request requests[] = {
		{.type = TTMEM_SYSTEM_MEMORY, .size = 64 << 20, .name = "command queue 0"},
		{.type = TTMEM_KERNEL,
		 .size = 48 << 10,
		 .page_size = 2048,
		 .name = "cq_prefetch",
		 .kernel_sort = TTMEM_KERNEL_DISPATCH},
		{.type = TTMEM_KERNEL,
		 .size = 56 << 10,
		 .page_size = 2048,
		 .name = "cq_dispatch",
		 .kernel_sort = TTMEM_KERNEL_DISPATCH},
		{.type = TTMEM_KERNEL,
		 .size = 100 << 10,
		 .page_size = 2048,
		 .name = "fabric_erisc_router",
		 .kernel_sort = TTMEM_KERNEL_FABRIC},
		{.type = TTMEM_L1_SMALL, .size = 16 << 10, .page_size = 64, .name = "semaphores"},
	};
	int r = 0;

	workload_phase("runtime");
	for (size_t i = 0; r == 0 && i < sizeof(requests) / sizeof(requests[0]); i++)
		r = alloc_everywhere(llm, &llm->model, &requests[i]);
	ttmem_phase_pop();
	return r;
}

static int load_model(struct llm *llm)
{
	char prefix[32];
	int r = 0;

	workload_phase("load");
	for (size_t i = 0; r == 0 && i < sizeof(model_weights) / sizeof(model_weights[0]); i++)
		r = load_weight(llm, &model_weights[i], "");
	for (uint32_t layer = 0; r == 0 && layer < llm->layers; layer++) {
		if (workload_ended(llm->context))
			break;
		workload_phase("layer %u", layer);
		(void)snprintf(prefix, sizeof(prefix), "layers.%u.", layer);
		for (size_t i = 0; r == 0 && i < sizeof(layer_weights) / sizeof(layer_weights[0]);
		     i++)
			r = load_weight(llm, &layer_weights[i], prefix);
		ttmem_phase_pop();
		workload_pause(llm->context);
	}
	ttmem_phase_pop();
	return r;
}

/* Grows the KV cache to this many tokens per sequence: whole blocks, K and V, in each layer. */
static int grow_kv(struct llm *llm, uint32_t tokens)
{
	static const char *const halves[] = {"k", "v"};
	char name[64];
	struct sim_request request = {
		.type = TTMEM_DRAM,
		.size = share(llm, tiles((uint64_t)BATCH * KV_BLOCK, KV_DIM), TILE_BF8),
		.page_size = TILE_BF8,
		.name = name,
	};
	int r = 0;

	while (r == 0 && llm->kv_tokens < tokens) {
		for (uint32_t i = 0; r == 0 && i < 2 * llm->layers; i++) {
			(void)snprintf(name, sizeof(name), "layers.%u.attention.cache_%s", i / 2,
				       halves[i % 2]);
			r = alloc_everywhere(llm, &llm->kv, &request);
		}
		llm->kv_tokens += KV_BLOCK;
	}
	return r;
}

/* Kernels are compiled and loaded when an op runs for the first time, and stay. */
static int load_kernels(struct llm *llm, size_t op)
{
	static const char *const parts[] = {"reader", "writer", "compute"};
	char name[64];
	struct sim_request request = {
		.type = TTMEM_KERNEL,
		.page_size = TILE_BF16,
		.name = name,
		.owner = op + 1,
		.kernel_sort = TTMEM_KERNEL_APPLICATION,
	};
	int r = 0;

	if (llm->op_loaded[op])
		return 0;
	for (uint32_t i = 0; r == 0 && i < 3; i++) {
		request.size = (i == 2 ? ops[op].kernel_kib : 3 + i) * KIB;
		(void)snprintf(name, sizeof(name), "%s.%s", ops[op].name, parts[i]);
		r = alloc_everywhere(llm, &llm->model, &request);
	}
	llm->op_loaded[op] = true;
	return r;
}

/* The circular buffers of one program on one chip. The output's is an alias of the output. */
static int make_circular_buffers(struct sim_device *device, size_t op, uint64_t output,
				 uint64_t output_size)
{
	uint32_t cores = device->card->chip->cores;
	struct sim_request request = {.type = TTMEM_CB, .owner = op + 1};
	uint64_t address;
	int r;

	request.name = "cb_in";
	request.page_size = ops[op].in_kib * KIB;
	request.size = request.page_size * cores;
	r = sim_device_alloc(device, &request, &address);
	if (r < 0)
		return r;

	request.name = "cb_weights";
	request.page_size = ops[op].weight_kib * KIB;
	request.size = request.page_size * cores;
	r = sim_device_alloc(device, &request, &address);
	if (r < 0)
		return r;

	request.name = "cb_out";
	request.flags = TTMEM_FLAG_ALIAS;
	request.page_size = TILE_BF16;
	request.size = output_size;
	request.address = output;
	return sim_device_alloc(device, &request, &address);
}

/* One op: its output replaces the previous one, its circular buffers are freed when it is done. */
static int run_op(struct llm *llm, uint32_t layer, size_t op)
{
	struct sim_pile outputs = SIM_PILE_NULL;
	char name[64];
	struct sim_request request = {
		.type = TTMEM_L1,
		.size = share(llm, tiles(BATCH, ops[op].columns), TILE_BF16),
		.page_size = TILE_BF16,
		.name = name,
	};
	int r;

	r = load_kernels(llm, op);
	(void)snprintf(name, sizeof(name), "layers.%u.%s.out", layer, ops[op].name);
	for (uint32_t i = 0; r == 0 && i < llm->devices.n; i++) {
		struct sim_device *device = &llm->devices.device[i];
		uint64_t address;

		r = sim_pile_alloc(&outputs, device, &request, &address);
		if (r == 0)
			r = make_circular_buffers(device, op, address, request.size);
	}
	for (uint32_t i = 0; i < llm->devices.n; i++)
		sim_device_free_owner(&llm->devices.device[i], TTMEM_CB, op + 1);

	sim_pile_deinit(&llm->activations);
	llm->activations = outputs;
	return r;
}

static int run_layers(struct llm *llm)
{
	int r = 0;

	for (uint32_t layer = 0; r == 0 && layer < llm->layers; layer++) {
		for (size_t op = 0; r == 0 && op < OP_COUNT; op++)
			r = run_op(llm, layer, op);
	}
	sim_pile_deinit(&llm->activations);
	return r;
}

/* Once: captures the ops of a token, first as a graph without memory, then as a trace. */
static int capture_trace(struct llm *llm)
{
	struct sim_request request = {
		.type = TTMEM_TRACE,
		.size = workload_size(llm->context, UINT64_C(24) << 20, TILE_BF16),
		.page_size = TILE_BF16,
		.name = "decode trace",
	};
	int r;

	if (llm->captured)
		return 0;
	workload_phase("capture");
	for (size_t op = 0; op < OP_COUNT; op++)
		sim_device_capture(&llm->devices.device[0], TTMEM_L1,
				   tiles(BATCH, ops[op].columns) * TILE_BF16, ops[op].name);
	r = alloc_everywhere(llm, &llm->model, &request);
	ttmem_phase_pop();
	llm->captured = r == 0;
	return r;
}

static int answer_request(struct llm *llm, uint32_t prompt, uint32_t tokens)
{
	int r;

	workload_phase("prefill");
	r = grow_kv(llm, prompt);
	if (r == 0)
		r = run_layers(llm);
	ttmem_phase_pop();

	workload_phase("decode");
	for (uint32_t token = 0; r == 0 && token < tokens; token++) {
		if (workload_ended(llm->context))
			break;
		workload_phase("token %u", token);
		r = grow_kv(llm, prompt + token + 1);
		if (r == 0)
			r = run_layers(llm);
		if (r == 0)
			r = capture_trace(llm);
		ttmem_phase_pop();
		workload_pause(llm->context);
	}
	ttmem_phase_pop();

	sim_pile_deinit(&llm->kv);
	llm->kv_tokens = 0;
	return r;
}

/**
 * workload_llm() - play the language model
 * @context: the context; run_ms 0 answers one request with 3 tokens
 *
 * Return: 0 or a negative errno; everything is freed either way.
 */
int workload_llm(struct workload_context *context)
{
	struct llm llm = {.context = context};
	int r;

	r = workload_open(context, CHIPS_MAX, &llm.devices);
	if (r < 0)
		return r;
	llm.layers = workload_count(context, LAYERS, 2);

	r = load_runtime(&llm);
	if (r == 0)
		r = load_model(&llm);
	while (r == 0 && !workload_ended(context)) {
		uint32_t prompt = (uint32_t)sim_random_between(&context->random, 64, 512);
		uint32_t tokens = (uint32_t)sim_random_between(&context->random, 48, 160);

		r = answer_request(&llm, prompt, context->run_ms ? tokens : 3);
		if (!workload_again(context))
			break;
	}

	sim_pile_deinit(&llm.activations);
	sim_pile_deinit(&llm.kv);
	sim_pile_deinit(&llm.model);
	workload_close(&llm.devices);
	return r;
}
