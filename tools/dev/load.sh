# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev load [--quick] [--json FILE] [PART...]: the daemon under load, with figures. ./dev load top [OPTION]...:
# what the full-screen view costs. In a pid namespace of its own where that is allowed, so that nobody else's
# processes are counted.

dev_load() {
	need build integration
	build_release src/daemon/ttmemd src/cli/ttmem src/store-day-test tests/programs/load \
		tests/programs/old-client || die "the build failed"
	if [ "${1-}" = top ]; then
		shift
		set -- /usr/bin/python3 tests/load/top_load.py "$@"
	else
		# Only one part needs a browser; without one it is left out, and says so.
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
