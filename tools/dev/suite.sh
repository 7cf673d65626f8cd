# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs one suite with a time limit and adds up the results that its programs recorded.
#
# A program that knows its counts appends a line "name passed failed skipped" to the file named by
# TTMEM_RESULTS, and "# FAIL name: why" or "# skip name: why" for what failed or was skipped. A suite that
# exits with an error without having recorded a failure counts as one failure, so that a crash is never
# reported as success.

passed=0
failed=0
skipped=0

# suite NAME CAP-IN-SECONDS COMMAND...
suite() {
	name=$1
	cap=$2
	shift 2
	mkdir -p build/logs
	log=build/logs/$name.log
	results=$ROOT/build/logs/$name.results
	: >"$results"
	start=$(now)
	# In the foreground, so that Ctrl-C reaches the suite too.
	TTMEM_RESULTS=$results timeout --foreground -k 10 "$cap" "$@" >"$log" 2>&1
	code=$?
	took=$(since "$start")

	# shellcheck disable=SC2046 # three numbers
	set -- $(awk '!/^#/ { p += $2; f += $3; s += $4 } END { print p + 0, f + 0, s + 0 }' "$results")
	p=$1 f=$2 s=$3

	note=
	case $code in
	0) ;;
	124 | 137) note="  (stopped: its cap is $cap s)" ;;
	*) [ "$f" -gt 0 ] || note="  (ended with $code)" ;;
	esac
	if [ "$code" -ne 0 ] && [ "$f" -eq 0 ]; then
		f=1
	fi

	printf '%-14s %5d passed %4d failed %4d skipped %8s s%s\n' \
		"$name" "$p" "$f" "$s" "$took" "$note"
	[ "$f" -eq 0 ] || show_tail
	show_notes
	passed=$((passed + p))
	failed=$((failed + f))
	skipped=$((skipped + s))
}

show_tail() {
	say "---- end of $log ----"
	tail -n 60 "$log"
	say "----"
}

# What failed first: the end of the log does not always have it.
show_notes() {
	sed -n 's/^# FAIL/    FAIL/p' "$results" | head -n 20
	sed -n '/^# FAIL/d; s/^# /    /p' "$results" | head -n 20
}

# Prints the final line with the counts. Succeeds if something passed and nothing failed.
total() {
	if [ "$skipped" -gt 0 ]; then
		say "$passed passed, $failed failed, $skipped skipped"
	else
		say "$passed passed, $failed failed"
	fi
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
