# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev soak mixed [MINUTES]: 200 processes of both protocols that come and go, a third of them in memory cgroups,
# while ttmemd is restarted and its disk fills up; its answers are compared with what each process has written down.
#
# ./dev soak [MINUTES]: tests that take too long for every commit. Each suite runs in each kind of build, with
# TTMEM_SOAK=1, which makes proofs run more rounds; then each fuzzer runs for MINUTES.

. tools/dev/sanitize.sh
. tools/dev/fuzz.sh

# Seconds for one suite of one build.
SOAK_CAP=14400

# soak NAME FOLDER SUITE...: runs the suites of a folder that is already built.
soak() {
	label=$1
	folder=$2
	shift 2
	for name; do
		# shellcheck disable=SC2046 # a list of words
		suite "$label-$name" "$SOAK_CAP" $(meson_test "$folder" "$name")
	done
}

soak_builds() {
	configure build-O0 -Doptimization=0 || die "cannot configure for -O0"
	compile build-O0 || die "the build with -O0 failed"
	soak O0 build-O0 unit hostile proof

	configure build-lto --buildtype=release -Db_lto=true -Db_ndebug=true ||
		die "cannot configure for LTO"
	compile build-lto || die "the build with LTO failed"
	soak lto build-lto unit hostile proof

	build_default || die "the build failed"
	suite valgrind "$SOAK_CAP" meson test -C build --no-rebuild --print-errorlogs -t 0 \
		--suite unit --wrap "valgrind --quiet --max-threads=2000 --error-exitcode=99 --leak-check=full"

	build_asan || die "the build with ASan failed"
	soak asan build-asan unit hostile proof
}

# As ./dev load does: no other processes in view, and mounts of its own.
soak_mixed() {
	need build integration
	build_release src/daemon/ttmemd src/legacy/program/ttmem-legacy src/cli/ttmem tests/programs/soak-client || die "the build failed"
	set -- /usr/bin/python3 -B tests/load/soak_mixed.py --minutes "$1"
	if unshare --pid --mount --fork --mount-proc true 2>/dev/null; then
		set -- unshare --pid --mount --fork --mount-proc --kill-child "$@"
	fi
	TTMEM_BUILD=$ROOT/build-release exec "$@"
}

dev_soak() {
	what=all
	if [ "${1-}" = mixed ]; then
		what=mixed
		shift
	fi
	minutes=${1:-60}
	case $minutes in
	'' | 0 | *[!0-9]*) die "usage: ./dev soak [mixed] [MINUTES]" ;;
	esac
	[ "$what" = mixed ] && soak_mixed "$minutes"
	need build sanitize fuzz soak
	TTMEM_SOAK=1
	TTMEM_UNIT_TIMEOUT=100
	patience=0 # for meson: no limit
	export TTMEM_SOAK TTMEM_UNIT_TIMEOUT
	sanitizer_settings
	soak_builds

	# "./dev fuzz" counts crashes itself; here it counts as one test.
	if ./dev fuzz $((minutes * 60)); then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
	total
}
