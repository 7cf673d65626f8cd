#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs one fuzzer: fuzz-one.sh SECONDS PROGRAM. Appends "ok NAME" or "FAIL NAME" to the file
# named by TTMEM_FUZZ_LOG.

set -u
seconds=$1
program=$2
name=$(basename "$program" -fuzz)
work=build-fuzz/corpus/$name
seeds=tests/corpus/$name # less the folders that its name begins with
while [ ! -d "$seeds" ] && [ "${seeds#*-}" != "$seeds" ]; do
	seeds=tests/corpus/${seeds#*-}
done
log=build/logs/fuzz-$name.log

mkdir -p "$work"
[ -d "$seeds" ] || seeds=

# libFuzzer checks the time between inputs; the outer limit catches an input that never ends.
timeout -k 10 $((seconds * 2 + 60)) "$program" \
	-max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
	-artifact_prefix="fuzz-crashes/$name-" "$work" ${seeds:+"$seeds"} >"$log" 2>&1
code=$?

runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
if [ "$code" -eq 0 ]; then
	echo "ok $name" >>"$TTMEM_FUZZ_LOG"
	printf 'ok   %-32s %12s inputs\n' "$name" "${runs:-?}"
else
	echo "FAIL $name" >>"$TTMEM_FUZZ_LOG"
	printf 'FAIL %-32s (ended with %d, see %s)\n' "$name" "$code" "$log"
	tail -n 30 "$log"
fi
