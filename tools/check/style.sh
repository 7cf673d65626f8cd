#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Rules that the other tools do not check: a licence line and a comment on the purpose at the top of each
# file, a limit on the length of files, and no // comments, which are for debugging only.

set -u
cd "$(dirname "$0")/../.." || exit 1

# Longer files are listed, with the reason, in long-files.txt.
longest=550
allowed=tools/check/long-files.txt

files() {
	find . \( -path ./.git -o -path './build*' -o -path ./tests/corpus -o -path ./fuzz-crashes \
		-o -name '__pycache__' -o -name '.pytest_cache' \) -prune -o -type f \( \
		-name '*.[ch]' -o -name '*.hpp' -o -name '*.sh' -o -name '*.py' -o -name '*.map' \
		-o -name 'meson.build' -o -name '*.scd' -o -path ./dev -o -path ./.ci/run \
		\) -print | sed 's,^\./,,' | sort
}

bad=0
for file in $(files); do
	[ -s "$file" ] || {
		echo "$file: empty"
		bad=1
	}
done

# One pass over all of them: a process for each file would take ten seconds.
# shellcheck disable=SC2016 # awk has variables of its own
files | xargs awk -v longest="$longest" -v allowed="$allowed" '
function wrong(text) { print text; bad = 1 }

# Before the next file, and at the end.
function finish() {
	if (name == "")
		return
	if (!has_licence)
		wrong(name ": no SPDX line on top")
	if (!has_purpose)
		wrong(name ": no comment on top that says what the file is for")
	if (lines > longest && !(name in long))
		wrong(name ": " lines " lines; cut it at a seam (or list it in " allowed " with the reason)")
}

BEGIN {
	while ((getline line <allowed) > 0) {
		split(line, words, " ")
		long[words[1]] = 1
	}
}

FNR == 1 {
	finish()
	name = FILENAME
	has_licence = has_purpose = 0
	is_c = name ~ /\.[ch]$/
}

{ lines = FNR }

FNR <= 3 && /SPDX-License-Identifier: / { has_licence = 1 }

# Any comment near the top, other than the licence and directives.
FNR <= 14 && !/SPDX|shellcheck|^#!|^# *include|^# *pragma/ && /^( \*|\/\*|#|"""|;) *[A-Za-z].......|^"""/ {
	has_purpose = 1
}

# String literals may contain URLs.
is_c && /\/\// {
	line = $0
	gsub(/"[^"]*"/, "", line)
	if (line ~ /(^|[^:*\/])\/\//)
		wrong(name ":" FNR ": use /* */ for comments that stay: " $0)
}

END {
	finish()
	exit bad
}
' || bad=1
exit "$bad"
