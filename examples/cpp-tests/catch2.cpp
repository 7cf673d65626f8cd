/* SPDX-License-Identifier: Apache-2.0 */

/* Catch2 with <ttmem/catch2.hpp>: a test of two sections, of which one leaves a buffer behind. */

#define CATCH_CONFIG_MAIN /* version 2 only; version 3 links Catch2Main */
#include <ttmem/catch2.hpp>

TEST_CASE("decode", "[model]")
{
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 1 << 20, "weights");

	SECTION("returns what it took")
	{
		ttmem_alloc(0, TTMEM_L1, 0x2000, 4096, "activations");
		ttmem_free(0, TTMEM_L1, 0x2000);
	}

	SECTION("forgets its cache")
	{
		ttmem_alloc(0, TTMEM_DRAM, 0x400000, 65536, "kv_cache");
	}

	ttmem_free(0, TTMEM_DRAM, 0x1000);
}

TEST_CASE("keeps its programs", "[cache]")
{
	ttmem_alloc(0, TTMEM_DRAM, 0x500000, 4096, "programs");
	ttmem::allow_leaks();
}
