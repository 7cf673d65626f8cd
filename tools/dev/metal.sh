# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev metal-test [FOLDER]: compares ttmem with a real tt-metal in its mock mode, which needs no card.
# FOLDER is an installed tt-metal (lib/libtt_metal.so, include/tt-metalium); its sources, where mock mode
# finds its machines, are at TT_METAL_HOME. docs/integrate-tt-metal.md says how to get both. With --cost it
# measures instead what a create and a free cost, with the build that users get; with --scene NAME (or all) it
# plays these only. ./dev metal-test --names TREE asks whether a tt-metal, as sources or built, still has the names
# that the preload library needs.

dev_metal_test() {
	if [ $# -eq 0 ]; then
		echo "metal-test: skipped, as there is no tt-metal to compare with."
		echo "Give the folder of an installed one: TT_METAL_HOME=SOURCES ./dev metal-test FOLDER."
		echo "docs/integrate-tt-metal.md, \"Compared with the real one\", says how to build it."
		return 0
	fi
	if [ "$1" = --names ]; then
		shift
		[ $# -gt 0 ] || die "which tt-metal? ./dev metal-test --names TREE"
		need build
		exec "$PYTHON" -B tests/metal/names.py "$@"
	fi
	installed=$1
	shift
	[ -e "$installed/lib/libtt_metal.so" ] || die "$installed has no lib/libtt_metal.so"
	need build integration
	if [ "${1-}" = --cost ]; then
		shift
		build_release src/cli/ttmem src/metal/libttmem-metal.so || die "the build failed"
		set -- tests/metal/cost.py "$ROOT/build-release" "$installed" "$@"
	else
		build_default || die "the build failed"
		set -- tests/metal/agree.py "$ROOT/build" "$installed" "$@"
	fi
	# tt-metal leaves files in /dev/shm, which others on this machine would read; and devices of others are not
	# to be compared.
	user=
	[ "$(id -u)" -eq 0 ] || user=--map-root-user
	# shellcheck disable=SC2086 # one word or none
	exec unshare $user --mount --propagation private --pid --fork --kill-child --mount-proc sh -c 'mount -t tmpfs tmpfs /dev/shm && exec "$@"' sh \
		"$PYTHON" -B "$@"
}
