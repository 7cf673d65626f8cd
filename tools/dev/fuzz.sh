# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev fuzz [SECONDS]: runs every fuzzer for that time, two in parallel. TTMEM_FUZZ_SHARE=k/n runs only
# every n-th of them, those whose number modulo n is k, so that successive runs can share the work.
#
# New inputs are collected in build-fuzz/corpus/. Inputs that crash are kept in fuzz-crashes/; once the bug
# is fixed, the file belongs in tests/corpus/NAME/, where every test run replays it.

. tools/dev/suite.sh

build_fuzz() {
	CC=clang
	export CC
	configure build-fuzz -Dfuzz=true -Db_lundef=false || return 1
	# Without fuzzers there is no such target.
	if ninja -C build-fuzz -t query fuzzers >/dev/null 2>&1; then
		compile build-fuzz fuzzers
	fi
}

# The fuzzers that this run executes.
fuzz_list() {
	share=${TTMEM_FUZZ_SHARE:-0/1}
	find build-fuzz/src -maxdepth 1 -name '*-fuzz' -type f | sort |
		awk -v k="${share%/*}" -v n="${share#*/}" 'n < 1 || NR % n == k % n'
}

dev_fuzz() {
	seconds=${1:-10}
	case $seconds in
	'' | 0 | *[!0-9]*) die "usage: ./dev fuzz [SECONDS]" ;;
	esac
	need build fuzz
	build_fuzz || die "the build with libFuzzer failed"

	fuzzers=$(fuzz_list)
	if [ -z "$fuzzers" ]; then
		say "no fuzzers to run"
		return 0
	fi
	mkdir -p build/logs fuzz-crashes
	TTMEM_FUZZ_LOG=$ROOT/build/logs/fuzz.list
	export TTMEM_FUZZ_LOG
	: >"$TTMEM_FUZZ_LOG"
	say "$fuzzers" | xargs -P 2 -n 1 sh tools/dev/fuzz-one.sh "$seconds"
	passed=$(grep -c '^ok ' "$TTMEM_FUZZ_LOG")
	failed=$(grep -c '^FAIL ' "$TTMEM_FUZZ_LOG")
	[ "$failed" -eq 0 ] || say "inputs that crash are in fuzz-crashes/"
	total
}
