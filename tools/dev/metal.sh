# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev metal-test [FOLDER]: compares ttmem with a real tt-metal in its mock mode, which needs no card.
# FOLDER is an installed tt-metal (lib/libtt_metal.so, include/tt-metalium); its sources, where mock mode
# finds its machines, are at TT_METAL_HOME. docs/integrate-tt-metal.md says how to get both.

dev_metal_test() {
	if [ $# -eq 0 ]; then
		echo "metal-test: skipped, as there is no tt-metal to compare with."
		echo "Give the folder of an installed one: TT_METAL_HOME=SOURCES ./dev metal-test FOLDER."
		echo "docs/integrate-tt-metal.md, \"Compared with the real one\", says how to build it."
		return 0
	fi
	installed=$1
	shift
	[ -e "$installed/lib/libtt_metal.so" ] || die "$installed has no lib/libtt_metal.so"
	need build integration
	build_default || die "the build failed"
	# tt-metal leaves files in /dev/shm, which others on this machine would read, and others' devices have the same
	# numbers as ours: neither is to see the other.
	user=
	[ "$(id -u)" -eq 0 ] || user=--map-root-user
	# shellcheck disable=SC2086 # one word or none
	exec unshare $user --mount --propagation private --pid --fork --kill-child --mount-proc \
		sh -c 'mount -t tmpfs tmpfs /dev/shm && exec "$@"' sh \
		"$PYTHON" tests/metal/agree.py "$ROOT/build" "$installed" "$@"
}
