/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A class like tt-metal's devices and allocators, for convention.c: results of every kind that metal-names.h has a C
 * type for, and a virtual table. Without headers of C++, which the cross compiler does not have.
 */

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long;

/* As std::vector: it has a destructor, so it is never returned in registers. */
struct Vector {
	const int *begin, *end, *capacity;

	Vector(const int *from, const int *to) : begin(from), end(to), capacity(to)
	{
	}
	Vector(Vector &&other) : begin(other.begin), end(other.end), capacity(other.capacity)
	{
	}
	~Vector()
	{
		begin = nullptr;
	}
};

/* As std::optional<uint32_t>. */
struct Optional {
	u32 value;
	bool has_value;

	Optional() : value(0), has_value(false)
	{
	}
	explicit Optional(u32 what) : value(what), has_value(true)
	{
	}
};

struct Grid {
	u64 x, y;

	Grid(u64 a, u64 b) : x(a), y(b)
	{
	}
};

struct Statistics {
	u64 total = 0, allocated = 0, free = 0, largest_free = 0;
};

enum class Type : u32 {
};
enum class Memory : u8 {
};

class Device
{
      public:
	virtual ~Device();
	virtual int arch() const;
	virtual int id() const;

	Vector list() const;
	Optional some() const;
	Optional none() const;
	Grid grid() const;
	Statistics statistics(const Type &type) const;
	u64 base(const Memory &memory) const;
	u32 alignment(Type type) const;
	bool is_seven() const;

      private:
	int number = 7;
};

static const int numbers[] = {4, 5, 6};

void operator delete(void *) noexcept
{
}
void operator delete(void *, u64) noexcept
{
}

Device::~Device() = default;

int Device::arch() const
{
	return 2;
}

int Device::id() const
{
	return number;
}

Vector Device::list() const
{
	return {numbers, numbers + 3};
}

Optional Device::some() const
{
	return Optional(static_cast<u32>(number) + 1);
}

Optional Device::none() const
{
	return {};
}

Grid Device::grid() const
{
	return {static_cast<u64>(number), 14};
}

Statistics Device::statistics(const Type &type) const
{
	Statistics all;

	all.total = static_cast<u64>(number);
	all.largest_free = static_cast<u64>(type);
	return all;
}

u64 Device::base(const Memory &memory) const
{
	return 100 + static_cast<u64>(memory);
}

u32 Device::alignment(Type type) const
{
	return 32 + static_cast<u32>(type);
}

bool Device::is_seven() const
{
	return number == 7;
}

static Device device;

extern "C" const void *convention_device()
{
	return &device;
}
