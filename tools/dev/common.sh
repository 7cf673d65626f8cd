# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# Small helpers for ./dev and its parts. Sourced, with the root of the repository as the current
# folder.

# Debian's python3: the one on PATH may lack Debian's packages.
# shellcheck disable=SC2034 # used by the sourced files
PYTHON=/usr/bin/python3

say() {
	printf '%s\n' "$*"
}

die() {
	printf 'dev: %s\n' "$*" >&2
	exit 1
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# The version, as the header has it.
version() {
	sed -n 's/^#define TTMEM_VERSION_[A-Z]* //p' include/ttmem/ttmem.h | paste -s -d .
}

now() {
	date +%s.%N
}

# since START: seconds since then, with one decimal.
since() {
	printf '%s %s\n' "$1" "$(now)" | awk '{ printf "%.1f", $2 - $1 }'
}

# How many tests run at a time where most of them wait for something: for processes, timers and the disk.
waiting_jobs() {
	echo $((2 * $(nproc)))
}

# suites FOLDER: the names of the suites of its tests.
suites() {
	meson introspect "$1" --tests | "$PYTHON" -c '
import json, sys
print(*{suite.partition(":")[2] for test in json.load(sys.stdin) for suite in test["suite"]})
'
}

# must_have_suites FOLDER SUITE...: meson is content with a suite that has no tests, and skips it beside others.
must_have_suites() {
	known=$(suites "$1")
	shift
	for name; do
		case " $known " in
		*" $name "*) ;;
		*)
			say "no test is in the suite $name"
			return 1
			;;
		esac
	done
}

# Every C and C++ file of ours; the corpus is test input.
c_files() {
	find src include kernel python tests examples -path tests/corpus -prune -o \
		\( -name '*.[ch]' -o -name '*.[ch]pp' \) -print | sort
}

shell_files() {
	find dev .ci/run tools tests examples data/bin -type f \( -name dev -o -name run -o -name '*.sh' \
		-o -name allocation_server_poc -o -name dump_remaining_buffers \) | sort
}

python_files() {
	find tools tests data/bin python -path tests/corpus -prune -o \
		\( -name '*.py' -o -path tools/check/measures \) -print | sort
}

# browser_tests: creates build/web-tests with the packages that tests/web needs. On failure $why says why.
browser_tests() {
	for program in node npm chromium; do
		have "$program" || { why="no $program"; return 1; }
	done
	mkdir -p build/web-tests
	cp tests/web/* tests/web/.npmrc build/web-tests/
	if ! cmp -s tests/web/package-lock.json build/web-tests/node_modules/.installed; then
		(cd build/web-tests && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1) || {
			why="the packages of the tests cannot be had"
			return 1
		}
		cp tests/web/package-lock.json build/web-tests/node_modules/.installed
	fi
}
