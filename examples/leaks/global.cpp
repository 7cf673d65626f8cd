/* SPDX-License-Identifier: Apache-2.0 */

/* A leak: a cache that lives as long as the program, and that nothing is ever taken out of. */

#include <map>

#include "toy.h"

static std::map<int, uint64_t> &cache()
{
	static auto *programs = new std::map<int, uint64_t>; /* never deleted, on purpose */

	return *programs;
}

static uint64_t program_for(int length)
{
	auto &programs = cache();
	auto found = programs.find(length);

	if (found == programs.end())
		found = programs.emplace(length, toy_alloc(MIB, "program")).first;
	return found->second;
}

int main()
{
	for (int length = 100; length < 108; length++) /* every length is a new one */
		program_for(length);
	return 0;
}
