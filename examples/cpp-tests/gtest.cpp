/* SPDX-License-Identifier: Apache-2.0 */

/* GoogleTest with <ttmem/gtest.hpp>: one test returns what it took, one does not, one is allowed not to. */

#include <ttmem/gtest.hpp>

namespace
{

void take(uint64_t address, uint64_t size, const char *name)
{
	ttmem_alloc(0, TTMEM_DRAM, address, size, name);
}

void give_back(uint64_t address)
{
	ttmem_free(0, TTMEM_DRAM, address);
}

/* What the suite holds counts for none of its tests. */
class Model : public testing::Test
{
      protected:
	static void SetUpTestSuite()
	{
		take(0x1000, 1 << 20, "weights");
	}

	static void TearDownTestSuite()
	{
		give_back(0x1000);
	}

	void SetUp() override
	{
		take(0x200000, 4096, "input");
	}

	void TearDown() override
	{
		give_back(0x200000);
	}
};

TEST_F(Model, Decodes)
{
	take(0x300000, 2 << 20, "activations");
	give_back(0x300000);
}

TEST_F(Model, ForgetsItsCache)
{
	take(0x400000, 65536, "kv_cache");
}

TEST_F(Model, KeepsItsProgramCache)
{
	take(0x500000, 4096, "programs");
	ttmem::allow_leaks();
}

} /* namespace */
