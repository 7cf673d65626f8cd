/* SPDX-License-Identifier: Apache-2.0 */

/* The stand-in's functions for Python, as ttnn's bindings are: tests/programs/metal/ttnn calls them. */

#include "metal.hpp"

using namespace tt::tt_metal;

namespace ttnn::operations::creation
{

std::shared_ptr<Buffer> zeros(IDevice *device, DeviceAddr size)
{
	return Buffer::create({device, size, 32, BufferType::DRAM});
}

} /* namespace ttnn::operations::creation */

extern "C" {

void *bind_open(int id)
{
	return new Device(id);
}

void bind_close(void *device)
{
	static_cast<Device *>(device)->close();
}

/* NULL if tt-metal throws: an exception must not pass through Python. */
void *bind_zeros(void *device, unsigned long size)
{
	try {
		return new std::shared_ptr<Buffer>(
			ttnn::operations::creation::zeros(static_cast<Device *>(device), size));
	} catch (...) {
		return nullptr;
	}
}

void bind_drop(void *buffer)
{
	delete static_cast<std::shared_ptr<Buffer> *>(buffer);
}
}
