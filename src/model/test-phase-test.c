/* SPDX-License-Identifier: Apache-2.0 */

/* What is a test's phase, and where its name ends. */

#include "model/test-phase.h"

#include <string.h>

#include "base/testing/unit.h"

static void check(const char *phase, const char *name, const char *inner)
{
	struct test_phase test;

	assert(test_phase_parse(phase, &test));
	assert(test.length == strlen(name) && strncmp(test.name, name, test.length) == 0);
	assert(strcmp(test.inner, inner) == 0);
}

static uint64_t key(const char *phase)
{
	struct test_phase test;

	assert(test_phase_parse(phase, &test));
	return test.key;
}

UNIT(a_test_has_its_name_and_its_own_phases)
{
	check("pytest-12-0a1b2c3d/3 a/test_a.py::test_b", "a/test_a.py::test_b", "");
	check("pytest-12-0a1b2c3d/3 a/test_a.py::test_b/load/weights", "a/test_a.py::test_b",
	      "load/weights");
	check("pytest-12-0a1b2c3d/3 a/t.py::Test::test_b[x/y-[1/2]]/load",
	      "a/t.py::Test::test_b[x/y-[1/2]]", "load");
	check("outer/more/pytest-1-00000000/40 t.py::t", "t.py::t", "");
	check("pytest-1-00000000/1 a/readme.md", "a/readme.md", "");
	check("pytest-1-00000000/1 t.py::t[cut", "t.py::t[cut", "");
	check("pytest-1-00000000/1 t.py::t]/x", "t.py::t]", "x");
}

UNIT(other_phases_are_no_tests)
{
	static const char *const others[] = {
		"",
		"/",
		"load weights",
		"pytest-",
		"pytest-12-0a1b2c3d",
		"pytest-12-0a1b2c3d/",
		"pytest-12-0a1b2c3d/3",
		"pytest-12-0a1b2c3d/3 ",
		"pytest-12-0a1b2c3d/between tests",
		"pytest-12-0a1b2c3d/0 session fixture device",
		"pytest-12-0a1b2c3/3 t.py::t",
		"pytest-12-0a1b2c3dd/3 t.py::t",
		"pytest-x-0a1b2c3d/3 t.py::t",
		"pytest-12-0A1B2C3D/3 t.py::t",
		"mypytest-12-0a1b2c3d/3 t.py::t",
	};
	struct test_phase test;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert(!test_phase_parse(others[i], &test));
}

UNIT(tests_are_told_apart_by_run_and_number)
{
	uint64_t one = key("pytest-1-00000000/1 t.py::t");

	assert(one == key("pytest-1-00000000/1 t.py::t/inner"));
	assert(one != key("pytest-1-00000000/2 t.py::t"));
	assert(one != key("pytest-1-00000001/1 t.py::t"));
}
