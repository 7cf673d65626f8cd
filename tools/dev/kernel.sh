# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev kernel-test: tests the module in real kernels. It is built for Debian's kernels with all static
# checks, and each kernel is booted with it in QEMU. --debug-kernel adds a kernel of our own build that checks
# its memory accesses and locks.

. tools/dev/suite.sh

# Seconds for both boots; each has a lower limit of its own.
KERNEL_CAP=1500

# What boot.sh copies from the build folder into the machine.
KERNEL_TARGETS="kernel-programs src/cli/ttmem src/daemon/ttmemd src/legacy/program/ttmem-legacy src/lib-life-test src/lib-semantics-test
	src/lib-spaces-test src/lib-api-misc-test src/lib-misuse-test src/lib-descriptor-test src/lib-limits-test
	src/lib-offer-book-test src/lib-escape-test src/lib-signal-test src/lib-crowd-test src/lib-family-test
	src/source-namespaces-test src/daemon-access-test"

dev_kernel_test() {
	debug=0
	case ${1:-} in
	--debug-kernel) debug=1 ;;
	'') ;;
	*) die "usage: ./dev kernel-test [--debug-kernel]" ;;
	esac
	groups="build kernel"
	[ "$debug" = 0 ] || groups="$groups debug-kernel"
	# shellcheck disable=SC2086 # a list of words
	need $groups
	# The user asked for these tests: a missing package is a failure here, but not in "./dev test".
	for group in $groups; do
		[ -z "$(missing "$group")" ] ||
			die "cannot test the module without: $(missing "$group")(see build/logs/apt.log)"
	done
	export TTMEM_KERNEL_MUST=1
	# shellcheck disable=SC2086 # a list of words
	build_default $KERNEL_TARGETS || die "the build failed"
	suite kernel "$KERNEL_CAP" sh tools/dev/run-suite.sh kernel
	if [ "$debug" = 1 ]; then
		suite debug-kernel 7200 sh tests/kernel/debug-kernel.sh
	fi
	total
}
