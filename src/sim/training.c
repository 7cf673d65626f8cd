/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Training steps of a 1.1B model (the shapes of TinyLlama) in bfloat16, the same on every chip.
 *
 * Weights and the optimizer's two moments live as long as the run. In the forward pass each layer
 * leaves activations behind; in the backward pass the layers free them in reverse while gradients
 * appear; the optimizer uses the gradients and frees them. So memory use has the well-known
 * sawtooth shape: up with the activations, flat at the turn, down at the end of the step.
 */

#include <stdio.h>
#include <ttmem/ttmem.h>

#include "sim/pile.h"
#include "sim/workload.h"

#define CHIPS_MAX 4u
#define TILE 32u
#define TILE_BF16 2048

#define DIM 2048u
#define HIDDEN 5632u
#define KV_DIM 256u
#define VOCABULARY 32000u
#define LAYERS 22u
#define TOKENS 2048u /* in a batch */

struct parameter {
	const char *name;
	uint32_t rows;
	uint32_t columns;
};

static const struct parameter parameters[] = {
	{"attention.wqkv", DIM, DIM + 2 * KV_DIM}, {"attention.wo", DIM, DIM},
	{"feed_forward.w1", DIM, HIDDEN},          {"feed_forward.w2", HIDDEN, DIM},
	{"feed_forward.w3", DIM, HIDDEN},
};

static const struct parameter activations[] = {
	{"attention.qkv", TOKENS, DIM + 2 * KV_DIM}, {"attention.out", TOKENS, DIM},
	{"feed_forward.gate", TOKENS, HIDDEN},       {"feed_forward.up", TOKENS, HIDDEN},
	{"feed_forward.out", TOKENS, DIM},
};

#define PARAMETER_COUNT (sizeof(parameters) / sizeof(parameters[0]))
#define ACTIVATION_COUNT (sizeof(activations) / sizeof(activations[0]))

struct training {
	struct workload_context *context;
	struct workload_devices devices;
	struct sim_pile model;       /* weights and moments */
	struct sim_pile gradients;   /* of the step */
	struct sim_pile activations; /* of the step */
	uint32_t layers;
};

static int alloc_tensor(struct training *training, struct sim_pile *pile, uint32_t type,
			const struct parameter *shape, const char *name)
{
	uint64_t bytes = (uint64_t)(shape->rows / TILE) * (shape->columns / TILE) * TILE_BF16;
	struct sim_request request = {
		.type = type,
		.size = workload_size(training->context, bytes, TILE_BF16),
		.page_size = TILE_BF16,
		.name = name,
	};
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < training->devices.n; i++)
		r = sim_pile_alloc(pile, &training->devices.device[i], &request, NULL);
	return r;
}

/* Every parameter of a layer, as "layers.3.attention.wo" plus the suffix. */
static int alloc_parameters(struct training *training, struct sim_pile *pile, uint32_t layer,
			    const char *suffix)
{
	char name[64];
	int r = 0;

	for (size_t i = 0; r == 0 && i < PARAMETER_COUNT; i++) {
		(void)snprintf(name, sizeof(name), "layers.%u.%s%s", layer, parameters[i].name,
			       suffix);
		r = alloc_tensor(training, pile, TTMEM_DRAM, &parameters[i], name);
	}
	return r;
}

static int load(struct training *training)
{
	static const struct parameter embeddings = {"tok_embeddings", VOCABULARY, DIM};
	static const char *const suffixes[] = {"", ".adamw_m", ".adamw_v"};
	int r = 0;

	workload_phase("init");
	for (size_t i = 0; r == 0 && i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		workload_phase("%s", i ? "optimizer" : "weights");
		r = alloc_tensor(training, &training->model, TTMEM_DRAM, &embeddings,
				 i ? "tok_embeddings.adamw" : "tok_embeddings");
		for (uint32_t layer = 0; r == 0 && layer < training->layers; layer++)
			r = alloc_parameters(training, &training->model, layer, suffixes[i]);
		ttmem_phase_pop();
		workload_pause(training->context);
	}
	ttmem_phase_pop();
	return r;
}

static int forward(struct training *training)
{
	char name[64];
	int r = 0;

	workload_phase("forward");
	for (uint32_t layer = 0; r == 0 && layer < training->layers; layer++) {
		workload_phase("layer %u", layer);
		for (size_t i = 0; r == 0 && i < ACTIVATION_COUNT; i++) {
			(void)snprintf(name, sizeof(name), "layers.%u.%s", layer,
				       activations[i].name);
			r = alloc_tensor(training, &training->activations, TTMEM_DRAM,
					 &activations[i], name);
		}
		ttmem_phase_pop();
		workload_pause(training->context);
	}
	ttmem_phase_pop();
	return r;
}

/* One layer of the backward pass: a scratch tensor in L1, its gradients; frees its activations. */
static int backward_layer(struct training *training, uint32_t layer)
{
	static const struct parameter chunk = {"grad_chunk", 8 * TILE, HIDDEN};
	struct sim_pile scratch = SIM_PILE_NULL;
	size_t left = training->activations.n - ACTIVATION_COUNT * training->devices.n;
	int r;

	r = alloc_tensor(training, &scratch, TTMEM_L1, &chunk, "grad_chunk");
	if (r == 0)
		r = alloc_parameters(training, &training->gradients, layer, ".grad");
	sim_pile_release(&training->activations, left);
	sim_pile_deinit(&scratch);
	return r;
}

static int backward(struct training *training)
{
	int r = 0;

	workload_phase("backward");
	for (uint32_t layer = training->layers; r == 0 && layer-- > 0;) {
		workload_phase("layer %u", layer);
		r = backward_layer(training, layer);
		ttmem_phase_pop();
		workload_pause(training->context);
	}
	ttmem_phase_pop();
	return r;
}

static void optimize(struct training *training)
{
	workload_phase("optimizer");
	workload_pause(training->context);
	sim_pile_deinit(&training->gradients);
	ttmem_phase_pop();
}

/* If told to end in the middle, it finishes the step, but without sleeping. */
static int step(struct training *training, uint32_t number)
{
	int r;

	workload_phase("step %u", number);
	r = forward(training);
	if (r == 0)
		r = backward(training);
	if (r == 0)
		optimize(training);
	ttmem_phase_pop();
	return r;
}

/**
 * workload_training() - play training steps
 * @context: the context; run_ms 0 makes one step
 *
 * Return: 0 or a negative errno; everything is freed either way.
 */
int workload_training(struct workload_context *context)
{
	struct training training = {.context = context};
	int r;

	r = workload_open(context, CHIPS_MAX, &training.devices);
	if (r < 0)
		return r;
	training.layers = workload_count(context, LAYERS, 2);

	r = load(&training);
	for (uint32_t number = 0; r == 0 && !workload_ended(context); number++) {
		r = step(&training, number);
		if (!workload_again(context))
			break;
	}

	sim_pile_deinit(&training.activations);
	sim_pile_deinit(&training.gradients);
	sim_pile_deinit(&training.model);
	workload_close(&training.devices);
	return r;
}
