#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every header compiles alone, so that the order of includes never matters. Public
# headers do so without warnings in the oldest C and C++ standards that we support.

set -u
cd "$(dirname "$0")/../.." || exit 1

CC=${CC:-cc}
CXX=${CXX:-c++}
bad=0

# alone HEADER COMPILER FLAG...
alone() {
	header=$1
	shift
	printf '#include "%s"\n' "$header" | "$@" -fsyntax-only - || {
		echo "$header does not compile alone: $*"
		bad=1
	}
}

if ! command -v "$CXX" >/dev/null; then
	echo "no C++ compiler"
	exit 77
fi

public() {
	find include/ttmem include/uapi -name "$1" 2>/dev/null | sed 's,^include/,,' | sort
}

for header in $(public '*.h'); do
	alone "$header" "$CC" -x c -std=c99 -pedantic -Wall -Wextra -Werror -Iinclude
done
for header in $(public '*.h') $(public '*.hpp'); do
	alone "$header" "$CXX" -x c++ -std=c++17 -pedantic -Wall -Wextra -Werror -Iinclude
done
for header in $(find src -name '*.h' | sed 's,^src/,,' | sort); do
	alone "$header" "$CC" -x c -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter \
		-Werror -Isrc -Iinclude
done
exit "$bad"
