/* SPDX-License-Identifier: Apache-2.0 */

/* A leak: an exception leaves the function before the line that gives the memory back. */

#include <stdexcept>
#include <string>

#include "toy.h"

static void check(const std::string &layer)
{
	if (layer == "norm")
		throw std::runtime_error("no such layer: " + layer);
}

static void load(const std::string &layer)
{
	uint64_t staging = toy_alloc(4 * MIB, "staging");

	check(layer);
	toy_free(staging); /* not reached for "norm" */
}

int main()
{
	for (const char *layer : {"embedding", "norm", "output"}) {
		try {
			load(layer);
		} catch (const std::exception &) {
			/* The program goes on with the next one, and nobody notices. */
		}
	}
	return 0;
}
