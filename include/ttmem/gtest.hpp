/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMEM_GTEST_HPP
#define TTMEM_GTEST_HPP

/*
 * GoogleTest: a test that leaves device memory behind fails. Include this in one file of the test program,
 * or in all; nothing else is needed, also with gtest_main. Then
 *
 *     TTMEM=1 ./tests --gtest_filter='Decode.*' --gtest_output=xml:tests.xml
 *
 * Each test has its peaks as properties in the XML (ttmem_peak_DRAM); the highest are printed at the end.
 * With C++17 or later, because the listener has to be registered once.
 */

#include <string>

#include <gtest/gtest.h>
#include <ttmem/test-memory.hpp>

namespace ttmem
{

class gtest_listener : public testing::EmptyTestEventListener
{
	void OnTestStart(const testing::TestInfo &test) override
	{
		test_memory::the_watcher().begin(std::string(test.test_suite_name()) + "." +
						 test.name());
	}

	/* Comes before that of the printer, so that the test has failed when its result is printed. */
	void OnTestEnd(const testing::TestInfo &test) override
	{
		const auto outcome = test_memory::the_watcher().end();

		for (std::uint32_t type = 0; type < TTMEM_TYPE_COUNT; type++) {
			if (outcome.peak[type] > 0)
				testing::Test::RecordProperty(std::string("ttmem_peak_") +
								      test_memory::type_name(type),
							      std::to_string(outcome.peak[type]));
		}
		if (!outcome.leak.empty())
			ADD_FAILURE_AT(test.file(), test.line()) << "ttmem: " << outcome.leak;
	}

	void OnTestProgramEnd(const testing::UnitTest &) override
	{
		test_memory::the_watcher().summary(stderr);
	}
};

namespace test_memory
{
/* GoogleTest owns the listener. */
inline const bool is_registered =
	(testing::UnitTest::GetInstance()->listeners().Append(new gtest_listener), true);
} /* namespace test_memory */

} /* namespace ttmem */

#endif
