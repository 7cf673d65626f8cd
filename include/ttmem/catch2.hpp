/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMEM_CATCH2_HPP
#define TTMEM_CATCH2_HPP

/*
 * Catch2, versions 2 and 3: a test that leaves device memory behind fails. Include this in exactly one file
 * of the test program; with version 2 in the one that has CATCH_CONFIG_MAIN or CATCH_CONFIG_RUNNER. Then
 *
 *     TTMEM=1 ./tests '[decode]'
 *
 * A test is looked at after each run through its sections. The highest peaks are printed at the end.
 */

#include <string>

#if __has_include(<catch2/catch_test_macros.hpp>)
#define TTMEM_CATCH2_LISTENER EventListenerBase
#include <catch2/catch_test_case_info.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#else
#define TTMEM_CATCH2_LISTENER TestEventListenerBase
#ifndef CATCH_CONFIG_EXTERNAL_INTERFACES
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#endif
#include <catch2/catch.hpp>
#endif
#include <ttmem/test-memory.hpp>

#ifdef CATCH_CONFIG_PREFIX_ALL
#define TTMEM_CATCH2_FAIL CATCH_FAIL_CHECK
#else
#define TTMEM_CATCH2_FAIL FAIL_CHECK
#endif

namespace ttmem
{

class catch2_listener : public Catch::TTMEM_CATCH2_LISTENER
{
      public:
	using Catch::TTMEM_CATCH2_LISTENER::TTMEM_CATCH2_LISTENER;

	/* The outermost section is the test itself: one run of it. */
	void sectionStarting(const Catch::SectionInfo &section) override
	{
		TTMEM_CATCH2_LISTENER::sectionStarting(section);
		if (depth_++ == 0)
			test_memory::the_watcher().begin(section.name);
	}

	/* A failure still counts here; when the test case has ended it would not. */
	void sectionEnded(const Catch::SectionStats &section) override
	{
		if (--depth_ == 0) {
			const auto outcome = test_memory::the_watcher().end();

			if (!outcome.leak.empty())
				TTMEM_CATCH2_FAIL("ttmem: " << outcome.leak);
		}
		TTMEM_CATCH2_LISTENER::sectionEnded(section);
	}

	void testRunEnded(const Catch::TestRunStats &run) override
	{
		TTMEM_CATCH2_LISTENER::testRunEnded(run);
		test_memory::the_watcher().summary(stderr);
	}

      private:
	int depth_ = 0;
};

CATCH_REGISTER_LISTENER(catch2_listener)

} /* namespace ttmem */

#endif
