/* SPDX-License-Identifier: Apache-2.0 */

/* A leak: the process is killed, and nothing in it can give anything back. */

#include <signal.h>

#include "toy.h"

static uint64_t load_weights(void)
{
	return toy_alloc(64 * MIB, "weights");
}

int main(void)
{
	uint64_t weights = load_weights();

	raise(SIGKILL); /* as the kernel does when memory runs out */
	toy_free(weights);
	return 0;
}
