# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev test: all suites, each with its counts and its time, and one line at the end.

. tools/dev/suite.sh

# Seconds. A cap ends what hangs for ever: each test has a limit of its own, and none of them judges speed.
TEST_CAP=3600

dev_test() {
	[ $# -gt 0 ] || set -- unit hostile proof integration check cross kernel web
	groups="build docs"
	for name; do
		case $name in
		unit | hostile | proof) ;;
		integration) groups="$groups integration systemd" ;;
		check | cross | kernel) groups="$groups $name" ;;
		web) groups="$groups web browser" ;;
		*) die "no such suite: $name (there are: unit hostile proof integration check cross kernel web)" ;;
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
