/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Stand-in: several devices that are used as one. */

#include <memory>
#include <utility>
#include <vector>

#include <tt-metalium/device.hpp>

namespace tt::tt_metal::distributed
{

class MeshDevice : public IDevice, public std::enable_shared_from_this<MeshDevice>
{
      public:
	explicit MeshDevice(std::vector<IDevice *> devices);
	~MeshDevice() override;

	int id() const override;
	bool is_initialized() const override;
	std::vector<IDevice *> get_devices() const;

      private:
	std::vector<IDevice *> devices_;
};

} /* namespace tt::tt_metal::distributed */
