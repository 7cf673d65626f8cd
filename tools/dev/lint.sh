# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev lint: all static checks of the sources. All steps run, even after a failure.

lint_failed=

# step NAME TOOL COMMAND...: prints the output only on failure. A step whose tool is missing is reported
# as skipped.
step() {
	name=$1
	tool=$2
	shift 2
	if ! have "$tool"; then
		printf 'skip %-12s no %s\n' "$name" "$tool"
		return
	fi
	start=$(now)
	if output=$("$@" 2>&1); then
		printf 'ok   %-12s %6s s\n' "$name" "$(since "$start")"
	else
		printf 'FAIL %-12s %6s s\n%s\n' "$name" "$(since "$start")" "$output"
		lint_failed="$lint_failed $name"
	fi
}

lint_format() {
	c_files | xargs clang-format --dry-run -Werror && return
	echo 'To repair: ./dev format'
	return 1
}

lint_spelling() {
	codespell --ignore-words tools/check/words.txt \
		--skip 'LICENSE,package-lock.json,./build,./build-*,./fuzz-crashes,./.git,./tests/corpus,words.txt' .
}

lint_shell() {
	shell_files | xargs shellcheck -x
}

lint_python() {
	python_files | xargs "$PYTHON" -c '
import sys
for name in sys.argv[1:]:
    compile(open(name, encoding="utf-8").read(), name, "exec")
'
}

lint_man() {
	for page in docs/man/*.scd; do
		[ -e "$page" ] || continue
		scdoc <"$page" >/dev/null || {
			echo "$page does not compile"
			return 1
		}
	done
}

# clang-tidy needs clang's compiler flags.
lint_tidy() {
	(
		# Its checks are errors; warnings of clang itself are not.
		CC=clang TTMEM_WERROR=0
		export CC TTMEM_WERROR
		# Brings the list of files up to date.
		configure build-tidy && ninja --quiet -C build-tidy build.ninja
	) && "$PYTHON" -B tools/dev/tidy.py build-tidy
}

dev_lint() {
	need build lint docs
	step format clang-format lint_format
	step layers sh sh tools/check/layers.sh
	step style sh sh tools/check/style.sh
	step spelling codespell lint_spelling
	step shell shellcheck lint_shell
	step python "$PYTHON" lint_python
	step man scdoc lint_man
	step tidy clang-tidy lint_tidy
	[ -z "$lint_failed" ] || die "lint found something in:$lint_failed"
}
