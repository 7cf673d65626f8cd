/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Captures a trace by each form of the functions that a release has, on a device of its own, and allocates
 * where the trace had a buffer that was freed. Prints the number of each form's device and of its trace, and
 * waits for its input to close.
 */

#include "metal.hpp"

#include <cstdio>
#include <functional>

using namespace tt::tt_metal;
using distributed::MeshDevice;
using distributed::MeshTraceId;

namespace
{

struct Form {
	std::function<MeshTraceId(MeshDevice &)> begin;
	std::function<void(MeshDevice &, const MeshTraceId &)> end;
};

std::shared_ptr<Buffer> make(MeshDevice &mesh, DeviceAddr size)
{
	return Buffer::create({&mesh, size, 32, BufferType::DRAM});
}

std::shared_ptr<Buffer> intermediate(MeshDevice &mesh)
{
	return make(mesh, 4096);
}

std::shared_ptr<Buffer> victim(MeshDevice &mesh)
{
	return make(mesh, 1024);
}

void capture(const Form &form, int id)
{
	Device card(id);
	auto mesh = std::make_shared<MeshDevice>(std::vector<IDevice *>{&card});
	auto before = make(*mesh, 2048);
	const MeshTraceId trace = form.begin(*mesh);
	auto written = intermediate(*mesh), result = make(*mesh, 512);

	try {
		(void)form.begin(*mesh);
	} catch (const char *) { /* it has not begun twice */
	}
	written.reset();
	form.end(*mesh, trace);
	/* Where something was that is older than the capture, and then where the trace writes. */
	before.reset();
	before = make(*mesh, 2048);
	auto overwritten = victim(*mesh);
	overwritten.reset();
	mesh->release_mesh_trace(trace);
	overwritten = victim(*mesh);
	std::printf("%d %u\n", id, *trace);
}

std::vector<Form> forms()
{
	const auto end = [](MeshDevice &mesh, const MeshTraceId &id) {
		mesh.end_mesh_trace(0, id);
	};
	const auto begin = [](MeshDevice &mesh) {
		const MeshTraceId id(77);

		mesh.begin_mesh_trace(0, id);
		return id;
	};
	std::vector<Form> list = {{begin, end}};

#if METAL_SHAPE >= 66
	list.push_back({[](MeshDevice &mesh) { return mesh.begin_mesh_trace(0); }, end});
#endif
#if METAL_SHAPE >= 70
	static distributed::MeshCommandQueue queue;
	const auto end_on = [](MeshDevice &mesh, const MeshTraceId &id) {
		mesh.end_mesh_trace(queue, id);
	};

	list.push_back({[](MeshDevice &mesh) { return mesh.begin_mesh_trace(queue); }, end_on});
	list.push_back({[](MeshDevice &mesh) {
				const MeshTraceId id(88);

				mesh.begin_mesh_trace(queue, id);
				return id;
			},
			end_on});
#endif
	return list;
}

} /* namespace */

int main()
{
	int id = 0;

	for (const auto &form : forms())
		capture(form, id++);
	std::fflush(stdout);
	while (std::getchar() != EOF)
		;
	return 0;
}
