#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every file of ours that a comment or a document names must exist: "src/book/read/view.c",
# "book/read/view.c" and, in C files, plain "view.c". Names of other projects' files are in the list below.

set -u
cd "$(dirname "$0")/../.." || exit 1

# Not in the tree: system files, generated and installed files, and names used as examples.
others='a.c app.c f.c new.c src/new.ts s.c cxxabi.h libc-start.c libc_start_call_main.h std_function.h lib/python3.11/asyncio/events.py lib/python3.11/contextlib.py lib/python3.11/site-packages/mine/m.py cli/NAME.c so.c x.c web/assets-data.c include/stdio.h include/gtest/gtest.h include/catch2/catch.hpp lib/python/ttmem/_command.py tests/run.mjs'

list=$(mktemp)
trap 'rm -f "$list"' EXIT
find . \( -name .git -o -path './build*' -o -name node_modules -o -name __pycache__ \) -prune -o \
	-type f -print |
	sed 's,^\./,,' >"$list"

top='src|docs|tests|tools|kernel|include|python|web|data|examples'
inside=$(find src -mindepth 1 -maxdepth 1 -type d | sed 's,^src/,,' | tr '\n' '|')

# shellcheck disable=SC2016 # awk has its own dollars
grep -E '\.(c|h|hpp|md|scd|sh|py|mjs|ts|build)$|^dev$|^\.ci/run$' "$list" |
	grep -vE '^(web/src|web/test|CHANGELOG|src/model/sites/site.*-test|tests/integration/repository/test_measures)' |
	xargs grep -HnoE "#include <[^>]*>|(($top|${inside%|})/[A-Za-z0-9_./-]*\.(c|h|hpp|py|sh|md|scd|ts|mjs|json|map|ld)|[A-Za-z0-9_-]+\.[ch])\b" |
	awk -v list="$list" -v others="$others" '
	BEGIN {
		while ((getline path < list) > 0) {
			# Any end of a path names the file.
			while (!exists[path]++ && sub(/^[^\/]*\//, "", path))
				;
		}
		n = split(others, words, " ")
		for (i = 1; i <= n; i++)
			exists[words[i]] = 1
	}
	{
		split($0, part, ":")
		token = $0
		sub(/^[^:]*:[^:]*:/, "", token)
		if (token ~ /^#include/)
			next
		in_c = part[1] ~ /^(src|kernel)\/.*\.[ch]$/
		if (token in exists || (token !~ /\// && !in_c))
			next
		print part[1] ":" part[2] ": names " token ", which does not exist"
		bad = 1
	}
	END { exit bad }
'
