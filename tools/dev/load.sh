# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev load [--quick] [--json FILE] [PART...]: measures the daemon under load. ./dev load top [OPTION]...:
# measures what the full-screen view costs. Both run in a pid namespace of their own where that is allowed, so
# that other processes do not count.

dev_load() {
	need build integration
	build_release src/daemon/ttmemd src/legacy/program/ttmem-legacy src/cli/ttmem src/store-day-test tests/programs/load \
		tests/programs/old-client || die "the build failed"
	if [ "${1-}" = top ]; then
		shift
		set -- /usr/bin/python3 tests/load/top_load.py "$@"
	else
		# Only one part needs a browser; without one it is skipped, with a message.
		why="the dashboard was not built"
		if grep -q /assets/index- build-release/web/assets-data.c && browser_tests; then
			export TTMEM_BROWSER_TESTS="$ROOT/build/web-tests"
		else
			export TTMEM_NO_BROWSER="$why"
		fi
		set -- /usr/bin/python3 -B tests/load/daemon_load.py "$@"
	fi
	if unshare --pid --mount --fork --mount-proc true 2>/dev/null; then
		set -- unshare --pid --mount --fork --mount-proc --kill-child "$@"
	fi
	TTMEM_BUILD=$ROOT/build-release exec "$@"
}
