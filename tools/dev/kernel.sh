# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev kernel-test: the module in real kernels. It is built for those that Debian offers, with every check
# that a compiler can make, and each kernel is booted in QEMU with it. --debug-kernel adds one that we build
# ourselves, which watches its own memory and locks.

. tools/dev/suite.sh

# Seconds for both boots; each has a cap of its own below that.
KERNEL_CAP=1500

# What boot.sh puts into the machine, of a build folder.
KERNEL_TARGETS="kernel-programs src/cli/ttmem src/daemon/ttmemd src/lib-life-test src/lib-semantics-test
	src/lib-api-misc-test src/lib-misuse-test src/lib-descriptor-test src/lib-limits-test src/lib-offer-book-test
	src/lib-escape-test src/lib-signal-test src/lib-crowd-test src/lib-family-test"

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
	# Asked for by name: what is missing is a failure here, and none of "./dev test".
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
