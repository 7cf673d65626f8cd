/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMEM_TEST_MEMORY_HPP
#define TTMEM_TEST_MEMORY_HPP

/*
 * Device memory of one test after the other: what <ttmem/gtest.hpp> and <ttmem/catch2.hpp> share.
 *
 * A test leaks if the process holds more buffers or bytes of a type on a device after it than before, or if
 * a buffer with the test's phase is still live. The totals see every thread, whatever its phases; the phase
 * sees a leak that is hidden by the end of an older buffer. The command ttmem reads the phases; without
 * it the totals alone are compared.
 *
 * For C++14 and later.
 */

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <ttmem/ttmem.h>

namespace ttmem
{
namespace test_memory
{

/* Devices of a machine that tests run on. Those with higher numbers are not looked at. */
constexpr std::uint32_t device_count = 64;
constexpr std::size_t report_size = 16384; /* of what is told about one test */
constexpr std::size_t peaks_shown = 20;

inline const char *type_name(std::uint32_t type)
{
	static const char *const names[] = {
#define TTMEM_TYPE(number, name, ...) #name,
#include <ttmem/types.def>
	};

	return type < TTMEM_TYPE_COUNT ? names[type] : "?";
}

inline std::string size_text(std::uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double number = static_cast<double>(bytes);
	char text[32];
	int unit = -1;

	while (number >= 1023.95 && unit < 3) {
		number /= 1024;
		unit++;
	}
	if (unit < 0)
		std::snprintf(text, sizeof(text), "%d B", static_cast<int>(bytes));
	else
		std::snprintf(text, sizeof(text), "%.1f %s", number, units[unit]);
	return text;
}

using stats = struct ::ttmem_stats; /* there is a function of this name, too */

/* The totals of every device and type. */
struct totals {
	stats of[device_count][TTMEM_TYPE_COUNT];
	std::uint64_t allocs = 0;

	totals() : of()
	{
		for (std::uint32_t device = 0; device < device_count; device++) {
			for (std::uint32_t type = 0; type < TTMEM_TYPE_COUNT; type++) {
				/* It stays all 0 where there is nothing. */
				(void)::ttmem_stats(device, type, &of[device][type]);
				allocs += of[device][type].allocs;
			}
		}
	}
};

/* What one test held. */
struct outcome {
	std::string leak; /* empty: it left nothing */
	std::uint64_t peak[TTMEM_TYPE_COUNT] =
		{}; /* the highest of all devices, above what was held before */
};

/* A field of a row of a table, which ends before two blanks. */
inline std::string field_at(const std::string &row, std::size_t column)
{
	const std::size_t from = std::min(column, row.size());

	return row.substr(from, row.find("  ", from) - from);
}

/* A frame of the framework: it and all outside it are the same for every test. */
inline bool is_of_framework(const std::string &frame)
{
	return frame.find("testing::") != std::string::npos ||
	       frame.find("Catch::") != std::string::npos;
}

/*
 * Buffers of a phase with their calls, one below the other, as `ttmem buffers --stacks` has them: a line of
 * titles, then for each buffer a row, and its calls further to the right. Empty if there are none, or
 * the command cannot be run.
 */
inline std::string rows_of_phase(const std::string &phase)
{
	const std::string command = "\"${TTMEM_COMMAND:-ttmem}\" buffers --stacks --pid " +
				    std::to_string(getpid()) + " 2>/dev/null </dev/null";
	const std::string indent(14, ' ');
	FILE *pipe = popen(command.c_str(), "r");
	std::string titles, rows;
	bool is_ours = false;
	char line[4096];

	while (pipe && std::fgets(line, sizeof(line), pipe)) {
		const std::string text = line;
		const bool is_row = text.compare(0, indent.size(), indent) != 0;

		if (titles.empty())
			titles = text;
		else if (is_row)
			is_ours = text.find(phase) != std::string::npos;
		else
			is_ours = is_ours && !is_of_framework(text);
		if (!is_ours || rows.size() >= report_size)
			continue;
		if (is_row)
			rows += "  " + field_at(text, text.find_first_not_of(' ')) + " of " +
				field_at(text, titles.find("TYPE")) + ", " +
				field_at(text, titles.find("NAME")) + "\n";
		else
			rows += "    at " + text.substr(indent.size());
	}
	if (!pipe || pclose(pipe) != 0)
		rows.clear();
	return rows;
}

/* One test at a time, on the thread that runs the tests. */
class watcher
{
      public:
	/* Before the test and its fixture. @name: as people know it. */
	void begin(const std::string &name)
	{
		if (!ttmem_enabled())
			return;
		for (std::uint32_t device = 0; device < device_count; device++)
			ttmem_reset_peak(device, TTMEM_ANY);
		phase_id_ = "#" + std::to_string(getpid()) + "." + std::to_string(++serial_);
		phase_ = name.substr(0, 200) + " " + phase_id_;
		lend_process_phase();
		ttmem_phase_push(phase_.c_str());
		name_ = name;
		allowed_ = false;
		before_ = std::make_unique<totals>();
	}

	/* After the test and its fixture. */
	outcome end()
	{
		outcome result;

		if (!before_)
			return result;
		ttmem_phase_pop();
		if (lent_ != 0 && current_phase() == lent_)
			ttmem_phase_process(std::getenv("TTMEM_PHASE"));
		const totals after;
		std::uint64_t highest = 0;
		bool holds = false;

		for (std::uint32_t device = 0; device < device_count; device++) {
			for (std::uint32_t type = 0; type < TTMEM_TYPE_COUNT; type++) {
				const stats &was = before_->of[device][type];
				const stats &is = after.of[device][type];

				holds |= is.buffers > 0;
				if (is.peak_bytes > was.bytes)
					result.peak[type] = std::max(result.peak[type],
								     is.peak_bytes - was.bytes);
				highest = std::max(highest, result.peak[type]);
				tell_rise(device, type, was, is, &result.leak);
			}
		}
		if (after.allocs != before_->allocs && holds)
			tell_rows(&result.leak);
		if (highest > 0)
			peaks_.emplace_back(highest, name_ + peak_text(result));
		if (allowed_)
			result.leak.clear();
		before_.reset();
		return result;
	}

	/* The running test may leave buffers behind. */
	void allow()
	{
		allowed_ = true;
	}

	/* After all tests: their peaks, or that nothing was tracked. */
	void summary(FILE *out)
	{
		if (!ttmem_enabled()) {
			std::fprintf(out, "ttmem: tracking is off, leaks of device memory were "
					  "not looked for; set TTMEM=1\n");
			return;
		}
		std::stable_sort(peaks_.begin(), peaks_.end(),
				 [](const auto &a, const auto &b) { return a.first > b.first; });
		if (!peaks_.empty())
			std::fprintf(out, "ttmem: peaks of device memory, highest first\n");
		for (std::size_t i = 0; i < peaks_.size() && i < peaks_shown; i++)
			std::fprintf(out, "  %s\n", peaks_[i].second.c_str());
		if (peaks_.size() > peaks_shown)
			std::fprintf(out, "  and %zu more\n", peaks_.size() - peaks_shown);
		peaks_.clear();
	}

      private:
	static std::uint32_t current_phase()
	{
		struct ttmem_origin here;

		ttmem_here(&here);
		return here.phase;
	}

	/* Whether nobody has set another phase than the environment's. */
	static bool is_phase_initial()
	{
		const char *initial = std::getenv("TTMEM_PHASE");
		const std::uint32_t current = current_phase();

		if (!initial || !*initial)
			return current == 0;
		ttmem_phase_push(initial);
		const bool is_same = current_phase() == current;
		ttmem_phase_pop();
		return is_same;
	}

	/*
	 * The test's other threads get its phase from the process. A phase that the program has set
	 * itself cannot be read, so it could not be put back: it is left alone.
	 */
	void lend_process_phase()
	{
		lent_ = 0;
		if (!is_phase_initial())
			return;
		ttmem_phase_process(phase_.c_str());
		lent_ = current_phase();
	}

	static std::string peak_text(const outcome &result)
	{
		std::string text;

		for (std::uint32_t type = 0; type < TTMEM_TYPE_COUNT; type++) {
			if (result.peak[type] > 0)
				text += std::string(text.empty() ? ": " : ", ") + type_name(type) +
					" " + size_text(result.peak[type]);
		}
		return text;
	}

	static void tell_rise(std::uint32_t device, std::uint32_t type, const stats &was,
			      const stats &is, std::string *leak)
	{
		const std::uint64_t bytes = is.bytes > was.bytes ? is.bytes - was.bytes : 0;
		const std::uint64_t buffers =
			is.buffers > was.buffers ? is.buffers - was.buffers : 0;

		if (bytes == 0)
			return; /* rows without memory behind them are no leak */
		*leak += "holds " + size_text(bytes) + " of " + type_name(type) +
			 " more on device " + std::to_string(device) +
			 " than before the test, in " + std::to_string(buffers) + " more buffer" +
			 (buffers == 1 ? "" : "s") + "\n";
	}

	void tell_rows(std::string *leak) const
	{
		const std::string rows = rows_of_phase(phase_id_);

		if (!rows.empty())
			*leak += "allocated in the test and still live:\n" + rows;
	}

	std::unique_ptr<totals> before_;
	std::string name_, phase_, phase_id_;
	std::vector<std::pair<std::uint64_t, std::string>> peaks_;
	unsigned serial_ = 0;
	std::uint32_t lent_ = 0; /* the phase that the process has for the test; 0 = its own */
	bool allowed_ = false;
};

/* The one of this program, however many of its files include this. */
inline watcher &the_watcher()
{
	static watcher watcher;

	return watcher;
}

} /* namespace test_memory */

/* In a test: what it leaves behind is meant to stay. */
inline void allow_leaks()
{
	test_memory::the_watcher().allow();
}

} /* namespace ttmem */

#endif
