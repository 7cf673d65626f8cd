# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev test: runs all suites; prints counts and time of each, and the sum in the last line.

. tools/dev/suite.sh

# Seconds. Only stops a suite that hangs: each test has a limit of its own, and none of them judges speed.
TEST_CAP=3600

dev_test() {
	# "web --all": every view in every browser, size and theme, not a sample of them.
	if [ "${1-} ${2-}" = "web --all" ]; then
		export TTMEM_WEB_ALL=1
		set -- web
	fi
	[ $# -gt 0 ] || set -- unit hostile proof integration trust golden check cross kernel web
	groups="build docs"
	for name; do
		case $name in
		unit | hostile | proof | unit-* | hostile-* | proof-*) ;;
		integration | trust | golden) groups="$groups integration systemd" ;;
		check | cross | kernel) groups="$groups $name" ;;
		web) groups="$groups web browser" ;;
		*) die "no such suite: $name (there are: unit hostile proof integration trust golden check cross kernel web)" ;;
		esac
	done
	# shellcheck disable=SC2086 # a list of words
	need $groups

	if ! build_default; then
		say "the build failed"
		say "0 passed, 1 failed"
		exit 1
	fi
	for name; do
		suite "$name" "$TEST_CAP" sh tools/dev/run-suite.sh "$name"
	done
	total
}
