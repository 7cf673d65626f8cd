# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev fuzz [SECONDS | --build]: runs every fuzzer for that time, two in parallel; --build: only builds them.
# TTMEM_FUZZ_SHARE=k/n takes only every n-th of them, those whose number modulo n is k, so that successive runs can
# share the work.
#
# New inputs are collected in build-fuzz/corpus/. Inputs that crash are kept in fuzz-crashes/; once the bug
# is fixed, the file belongs in tests/corpus/NAME/, where every test run replays it.

. tools/dev/suite.sh

build_fuzz() {
	CC=clang
	export CC
	configure build-fuzz -Dfuzz=true -Db_lundef=false || return 1
	fuzzers=$(fuzz_list)
	if [ -n "$fuzzers" ]; then
		# shellcheck disable=SC2086 # a list of words
		compile build-fuzz $fuzzers
	fi
}

# The fuzzers that this run builds and executes, below build-fuzz/.
fuzz_list() {
	share=${TTMEM_FUZZ_SHARE:-0/1}
	ninja -C build-fuzz -t targets all | sed -n 's,^\(src/[^/]*-fuzz\): .*,\1,p' | sort |
		awk -v k="${share%/*}" -v n="${share#*/}" 'n < 1 || NR % n == k % n'
}

dev_fuzz() {
	seconds=${1:-10}
	case $seconds in
	--build) ;;
	'' | 0 | *[!0-9]*) die "usage: ./dev fuzz [SECONDS | --build]" ;;
	esac
	need build fuzz
	build_fuzz || die "the build with libFuzzer failed"
	[ "$seconds" != --build ] || return 0

	if [ -z "$fuzzers" ]; then
		say "no fuzzers to run"
		return 0
	fi
	mkdir -p build/logs fuzz-crashes
	TTMEM_FUZZ_LOG=$ROOT/build/logs/fuzz.list
	export TTMEM_FUZZ_LOG
	: >"$TTMEM_FUZZ_LOG"
	say "$fuzzers" | sed 's,^,build-fuzz/,' | xargs -P 2 -n 1 sh tools/dev/fuzz-one.sh "$seconds"
	passed=$(grep -c '^ok ' "$TTMEM_FUZZ_LOG")
	failed=$(grep -c '^FAIL ' "$TTMEM_FUZZ_LOG")
	[ "$failed" -eq 0 ] || say "inputs that crash are in fuzz-crashes/"
	total
}
