#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# libttmem.so exports exactly what its map lists and its headers declare, all of it named ttmem_*. It
# needs only libc, so that it loads wherever tt-metal runs (tools/check/glibc.sh: how new). libttmem.a,
# where it is built, has the same global symbols, and Debian's list of them is complete.

set -u
cd "$(dirname "$0")/../.." || exit 1

library=${TTMEM_BUILD:-build}/src/lib/libttmem.so
archive=${TTMEM_BUILD:-build}/src/lib/libttmem.a
map=src/lib/ttmem.map
bad=0

if [ ! -e "$library" ]; then
	echo "$library is not built"
	exit 77
fi

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# exported FILE: symbols of type A are version names.
exported() {
	nm -D --defined-only --format=posix "$1" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' | sort -u
}

exported "$library" >"$work/exported"

sed -e 's,/\*[^*]*\*/,,g' "$map" |
	awk '/global:/ { on = 1; next } /local:|}/ { on = 0 } on' |
	tr -d ' \t' | sed -n 's/;$//p' | sort -u >"$work/map"

# After preprocessing, a ttmem_ name followed by a parenthesis is a function.
# query.h is that of another library.
for header in include/ttmem/provider.h include/ttmem/ttmem.h; do
	printf '#include "%s"\n' "$header"
done | cc -E -P -Iinclude -I. - | grep -o 'ttmem_[a-z0-9_]* *(' | tr -d ' (' |
	sort -u >"$work/declared"

# compare A B TEXT: names in A that are not in B.
compare() {
	comm -23 "$work/$1" "$work/$2" >"$work/difference"
	[ -s "$work/difference" ] || return
	echo "$3"
	sed 's/^/    /' "$work/difference"
	bad=1
}

compare exported map "exported, but not in $map (add them there, or make them static):"
compare map exported "in $map, but not exported (misspelt, or not written yet):"
compare exported declared "exported, but not declared in include/ttmem/*.h:"
compare declared exported "declared in include/ttmem/*.h, but not exported (add to $map):"

if [ -e "$archive" ]; then
	nm --extern-only --defined-only --format=posix "$archive" |
		awk 'NF > 1 { print $1 }' | sort -u >"$work/archive"
	compare archive exported "global in libttmem.a only (make them hidden):"
	compare exported archive "not in libttmem.a, but in libttmem.so:"
fi

if grep -v '^ttmem_' "$work/exported"; then
	echo "exported without the prefix ttmem_: rename them"
	bad=1
fi

# Debian's lists, by which packages that use a library get their dependency.
for built in "$library" "${TTMEM_BUILD:-build}/src/query/libttmem-query.so"; do
	[ -e "$built" ] || continue
	list=data/debian/$(basename "$built" .so)0.symbols
	exported "$built" >"$work/built"
	sed -n 's/^ \(ttmem_[a-z0-9_]*\)@.*/\1/p' "$list" | sort -u >"$work/debian"
	compare built debian "exported, but not in $list (add with the coming version):"
	compare debian built "in $list, but not exported (a released symbol stays):"
done

readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$work/needed"
if grep -v -e '^libc\.so\.6$' -e '^ld-linux' "$work/needed"; then
	echo "needs more than libc: it is linked into every application"
	bad=1
fi

# Each library that the command is linked with is loaded at every start, with all that it needs itself.
readelf -d "${TTMEM_BUILD:-build}/src/cli/ttmem" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$work/command"
if grep -e curl -e 'libstdc' "$work/command"; then
	echo "is linked into the command: load it when it is needed (src/base/process/late-library.h)"
	bad=1
fi

echo "$(wc -l <"$work/exported") symbols"
exit "$bad"
