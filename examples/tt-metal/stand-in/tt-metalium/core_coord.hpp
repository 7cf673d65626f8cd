/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Stand-in: how many cores a circular buffer lies on. */

#include <cstdint>

namespace tt::tt_metal
{

class CoreRangeSet
{
      public:
	explicit CoreRangeSet(std::uint32_t cores) : cores_(cores)
	{
	}

	std::uint32_t num_cores() const;

      private:
	std::uint32_t cores_;
};

} /* namespace tt::tt_metal */
