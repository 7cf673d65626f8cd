#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The structs that other programs read, book_* and the kernel module's ttmem_ioc_*, have no holes and no
# padding: such bytes are never written, so their values are undefined. Prints the size of each struct.

set -u
cd "$(dirname "$0")/../.." || exit 1

if ! command -v pahole >/dev/null; then
	echo "no pahole"
	exit 77
fi

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# Compile all headers of the book into one object and keep unused types, so that no struct is missed
# because nothing uses it yet.
for header in $(find src/book -name "*.h" | sort); do
	printf '#include "%s"\n' "${header#src/}"
done >"$work/layout.c"
printf '#include <uapi/ttmem.h>\n' >>"$work/layout.c"
if [ ! -s "$work/layout.c" ]; then
	echo "src/book has no headers"
	exit 77
fi
cc -std=gnu11 -D_GNU_SOURCE -Isrc -Iinclude -g -fno-eliminate-unused-debug-types \
	-c -o "$work/layout.o" "$work/layout.c" || exit 1

for prefix in book_ ttmem_ioc_; do
	pahole --prefix_filter "$prefix" "$work/layout.o"
done | awk '
/^struct (book|ttmem_ioc)_/ { name = $2 }
/XXX .*hole|[^_]padding:/ {
	printf "struct %s has bytes that nobody writes; add explicit reserved members:\n%s\n", name, $0
	bad = 1
}
/\/\* size: / && name != "" {
	match($0, /size: [0-9]+/)
	printf "%-32s %6d bytes\n", name, substr($0, RSTART + 6, RLENGTH - 6)
	name = ""
	n++
}
END {
	if (n == 0)
		print "no struct book_* found"
	exit bad
}'
