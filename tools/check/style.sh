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
bad=0

files() {
	find . \( -path ./.git -o -path './build*' -o -path ./tests/corpus -o -path ./fuzz-crashes \
		-o -name '__pycache__' -o -name '.pytest_cache' \) -prune -o -type f \( \
		-name '*.[ch]' -o -name '*.hpp' -o -name '*.sh' -o -name '*.py' -o -name '*.map' \
		-o -name 'meson.build' -o -name '*.scd' -o -path ./dev -o -path ./.ci/run \
		\) -print | sed 's,^\./,,' | sort
}

wrong() {
	echo "$*"
	bad=1
}

for file in $(files); do
	head -n 3 "$file" | grep -q 'SPDX-License-Identifier: ' ||
		wrong "$file: no SPDX line on top"

	# Any comment near the top, other than the licence and directives.
	head -n 14 "$file" | grep -v -e SPDX -e shellcheck -e '^#!' -e '^# *include' -e '^# *pragma' |
		grep -q -E '^( \*|/\*|#|"""|;) *[A-Za-z].{7}|^"""' ||
		wrong "$file: no comment on top that says what the file is for"

	lines=$(wc -l <"$file")
	if [ "$lines" -gt "$longest" ] && ! grep -q "^$file " "$allowed"; then
		wrong "$file: $lines lines; cut it at a seam (or list it in $allowed with the reason)"
	fi

	case $file in
	*.[ch])
		# String literals may contain URLs.
		sed 's/"[^"]*"//g' "$file" | grep -n -E '(^|[^:*/])//' | sed "s,^,$file:," |
			grep . && wrong "$file: use /* */ for comments that stay"
		;;
	esac
done
exit "$bad"
