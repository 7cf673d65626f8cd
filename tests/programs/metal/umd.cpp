/* SPDX-License-Identifier: Apache-2.0 */

/* The stand-in's library below tt-metal: it knows which chips there are, two on each n300. */

#include "metal.hpp"

namespace tt::umd
{

const ClusterDescriptor &ClusterDescriptor::instance()
{
	static const ClusterDescriptor descriptor;

	return descriptor;
}

const std::unordered_map<int, std::uint64_t> &ClusterDescriptor::get_chip_unique_ids() const
{
	static const std::unordered_map<int, std::uint64_t> ids{
		{0, 0xa0}, {1, 0xa1}, {2, 0xa2}, {3, 0xa3}};

	return ids;
}

std::uint64_t ClusterDescriptor::get_board_id_for_chip(int chip) const
{
	return std::uint64_t{0x14} << 36 | static_cast<std::uint64_t>(chip / 2);
}

} /* namespace tt::umd */
