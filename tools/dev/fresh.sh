# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs README's commands on a machine that has none of the packages: ./dev fresh-test (tests/fresh/run.sh).

dev_fresh_test() {
	[ "$*" != --short ] || set -- unit
	need system
	exec sh tests/fresh/run.sh "$@"
}
