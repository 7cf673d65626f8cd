/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Stand-in: a device, as far as an observer sees it. */

namespace tt::tt_metal
{

class IDevice
{
      public:
	virtual ~IDevice() = default;
	virtual int id() const = 0;
	virtual bool is_initialized() const = 0;
};

} /* namespace tt::tt_metal */
