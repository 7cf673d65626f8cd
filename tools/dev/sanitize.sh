# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev sanitize [--build] [memory] [races]: memory errors and undefined behaviour in the unit and hostile tests, then
# races in the book and the library, or one of them. --build: only builds what they need.

. tools/dev/suite.sh

patience=10

# Seconds for one suite. Sanitizers cost a factor of five to twenty.
SANITIZE_CAP=900

# TSan cannot map its shadow memory if the kernel randomizes many address bits, so turn that off; in a
# container that forbids this, try without.
fixed_addresses() {
	if setarch "$(uname -m)" -R true 2>/dev/null; then
		setarch "$(uname -m)" -R "$@"
	else
		"$@"
	fi
}

# Both with -O1, which compiles faster than -O2 by more than the tests are slower.
build_asan() {
	configure build-asan -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false && compile build-asan
}

configure_tsan() {
	configure build-tsan -Doptimization=1 -Db_sanitize=thread -Db_lundef=false
}

# build_tsan [TEST]...: what these tests need, or everything.
build_tsan() {
	configure_tsan || return 1
	start=$(now)
	ninja -C build-tsan build.ninja >build/logs/configure-build-tsan.log 2>&1 || {
		show_configure build/logs/configure-build-tsan.log
		return 1
	}
	# shellcheck disable=SC2046 # a list of words
	fixed_addresses ninja --quiet -C build-tsan ${1:+lib-test-modules} $(for test; do
		case $test in
		*-replay) echo "src/$test" ;;
		*) echo "src/$test-test" ;;
		esac
	done) || return 1
	say "built build-tsan in $(since "$start") s"
}

# tsan_tests SUITE...: the names of their tests, but for those that TSan need not see.
tsan_tests() {
	must_have_suites build-tsan "$@" >&2 || return 1
	for name; do
		set -- "$@" --suite "$name"
		shift
	done
	meson test -C build-tsan --list "$@" 2>/dev/null | sed -n 's,.* / ,,p' | grep -v -x -E "$TSAN_ALONE"
}

# For the suites of every sanitized build; the caller's settings take precedence.
sanitizer_settings() {
	: "${TTMEM_UNIT_TIMEOUT:=10}"
	: "${ASAN_OPTIONS:=detect_stack_use_after_return=1:strict_string_checks=1}"
	: "${UBSAN_OPTIONS:=print_stacktrace=1:halt_on_error=1}"
	: "${TSAN_OPTIONS:=halt_on_error=1:second_deadlock_stack=1}"
	export TTMEM_UNIT_TIMEOUT ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS
}

# Prints the command that runs SUITE... in FOLDER; $patience multiplies meson's own limits.
meson_test() {
	folder=$1
	shift
	for name; do
		set -- "$@" --suite "$name"
		shift
	done
	say meson test -C "$folder" --no-rebuild --print-errorlogs -t "$patience" \
		--num-processes "$(waiting_jobs)" "$@"
}

# Long tests of one thread, in which there is no race to find.
TSAN_ALONE='book-block|book-property'

TSAN_THREADS="base-pthreads base-worker daemon-collector legacy-server-legacy-question legacy-server-legacy-server
	daemon-native-server daemon-log-writer daemon-recorder daemon-region-watch daemon-tracked-file tui-poller web-push"

sanitize_memory() {
	build_asan || die "the build with ASan failed"
	[ -z "$only_build" ] || return 0
	for name in unit hostile; do
		# Fewer random operations: "./dev test" has all of them.
		# shellcheck disable=SC2046 # a list of words
		suite "asan-$name" "$SANITIZE_CAP" env TTMEM_TEST_QUICK=1 $(meson_test build-asan "$name")
	done
}

sanitize_races() {
	configure_tsan || die "the build with TSan failed"
	tests=$(tsan_tests unit-book unit-lib unit-legacy-debug-log unit-store) || die "a suite for TSan has no tests"
	[ -n "$tests" ] || die "there are no tests for TSan"
	# shellcheck disable=SC2086 # lists of words
	build_tsan $tests $TSAN_THREADS || die "the build with TSan failed"
	[ -z "$only_build" ] || return 0

	# timeout cannot run a shell function, so this repeats fixed_addresses().
	set -- setarch "$(uname -m)" -R
	"$@" true 2>/dev/null || set --
	# shellcheck disable=SC2086,SC2046 # lists of words
	suite tsan "$SANITIZE_CAP" "$@" $(meson_test build-tsan) $tests
	# Of the other tests, those with several threads, except for the daemon's sandboxed processes: a
	# sanitizer needs more than they are allowed.
	# shellcheck disable=SC2086,SC2046 # lists of words
	suite tsan-threads "$SANITIZE_CAP" "$@" $(meson_test build-tsan) $TSAN_THREADS
}

dev_sanitize() {
	only_build=
	if [ "${1-}" = --build ]; then
		only_build=1
		shift
	fi
	[ $# -gt 0 ] || set -- memory races
	for kind; do
		case $kind in memory | races) ;; *) die "usage: ./dev sanitize [--build] [memory] [races]" ;; esac
	done
	need build sanitize
	sanitizer_settings
	for kind; do
		"sanitize_$kind"
	done
	[ -n "$only_build" ] || total
}
