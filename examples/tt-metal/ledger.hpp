/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What tt-metal has told about its buffers, and which of it was reported to ttmem.
 *
 * A free is never worked out from the Buffer or its device: by then the device may be closed or gone. It
 * ends exactly what was reported when the buffer was allocated, and the ledger remembers that. It knows
 * nothing of tt-metal's types.
 */

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ttmem_metal
{

/* What a Buffer says of itself. */
struct Facts {
	std::vector<std::uint32_t> devices; /* of a mesh: all of them */
	std::uint32_t type = 0;
	std::uint64_t address = 0; /* 0: hooked, no memory behind it */
	std::uint64_t size = 0;    /* on each device */
	std::uint64_t size_per_bank = 0;
};

struct Circular {
	std::uint64_t address = 0;
	std::uint64_t size = 0; /* on each core */
	std::uint32_t cores = 0;
	bool global = false; /* lies inside a buffer that is counted already */
};

struct Totals {
	std::uint64_t buffers = 0; /* reported, each once however many devices */
	std::uint64_t guests = 0;  /* over memory that another buffer is counted for */
	std::uint64_t hooked = 0;
	std::uint64_t empty = 0;
	std::uint64_t unknown = 0;  /* freed, and never seen before */
	std::uint64_t silent = 0;   /* gone without a word, found out later */
	std::uint64_t programs = 0; /* told, also those that were told before */
	std::uint64_t lost = 0;     /* out of memory, tt-metal threw, or too many programs */
};

class Ledger
{
      public:
	/* Never destroyed: buffers are freed by exit handlers, too. */
	static Ledger &instance() noexcept;

	/* @life tells whether the Buffer object is still there. */
	void allocated(const void *buffer, const std::weak_ptr<const void> &life, Facts facts);

	/* False if it was never seen; then unknown() with its facts. */
	bool deallocated(const void *buffer);
	void unknown(const Facts &facts);

	/* @owner is the device that tt-metal names, @devices what it stands for. */
	void circular(const void *owner, const std::vector<std::uint32_t> &devices,
		      const Circular &cb);

	/* The kernels of @program are on @devices. Where that is known already, nothing is new. */
	void program(const void *program, const void *owner,
		     const std::vector<std::uint32_t> &devices);

	/* Circular buffers and kernels of @owner have ended. */
	void circular_end(const void *owner);

	void lost() noexcept;
	Totals totals();

      private:
	/* Device, type, address. */
	using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;

	struct Record {
		std::weak_ptr<const void> life;
		std::vector<std::uint32_t> devices; /* where it is counted; none for a guest */
		std::uint32_t type = 0;
		std::uint64_t address = 0;
	};

	struct CircularSet {
		std::vector<std::uint32_t> devices;
		std::map<std::uint64_t, Circular> by_address;
	};

	/* The kernels of a program on one device. */
	struct Kernels {
		std::uint64_t number = 0; /* that ttmem has for an address */
		const void *owner = nullptr;
	};

	Ledger() = default;
	void hooked(const Facts &facts);
	bool claim(const Key &key, const void *buffer);
	void end(const void *buffer);
	void end_kernels(const void *owner);

	std::mutex mutex_;
	std::unordered_map<const void *, Record> records_;
	std::map<Key, const void *> holders_;
	std::unordered_map<const void *, CircularSet> circulars_;
	std::map<std::pair<const void *, std::uint32_t>, Kernels> kernels_; /* program, device */
	std::uint64_t last_number_ = 0;
	Totals totals_;
};

} // namespace ttmem_metal
