/* SPDX-License-Identifier: Apache-2.0 */

/* A leak: release() gives the object away instead of ending it, so its destructor never runs. */

#include <memory>

#include "toy.h"

class Buffer
{
      public:
	explicit Buffer(uint64_t size) : address_(toy_alloc(size, "kv cache"))
	{
	}

	~Buffer()
	{
		toy_free(address_);
	}

      private:
	uint64_t address_;
};

static void generate(bool again)
{
	std::unique_ptr<Buffer> cache(new Buffer(8 * MIB));

	if (again)
		(void)cache.release(); /* reset() was meant */
}

int main()
{
	generate(false);
	generate(true);
	return 0;
}
