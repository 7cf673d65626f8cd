#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Programs that were built with older libraries keep working: nothing that the last release had has gone or changed.
# tests/abi describes its libraries; "abi.sh --write" does so when a version is released. One that is new since then
# has no description yet.
#
# usage: abi.sh [FOLDER]: compare with the descriptions in there

set -u
cd "$(dirname "$0")/../.." || exit 1

build=${TTMEM_BUILD:-build}
machine=$(uname -m)
folder=tests/abi
write=
compared=0
bad=0

case ${1:-} in
--write) write=1 ;;
?*) folder=$1 ;;
esac

if ! command -v abidiff >/dev/null; then
	echo "no abidiff"
	exit 77
fi

describe() {
	version=$(sed -n 's/^#define TTMEM_VERSION_[A-Z]* //p' include/ttmem/ttmem.h | paste -s -d .)
	rm -f "$folder/$name"-[0-9]*-"$machine".abi
	abidw --exported-interfaces-only --headers-dir include/ttmem --drop-private-types --no-show-locs \
		--no-comp-dir-path --no-corpus-path --out-file "$folder/$name-$version-$machine.abi" "$library"
}

for name in libttmem libttmem-query; do
	for library in "$build"/src/*/"$name.so"; do :; done
	[ -e "$library" ] || continue
	if [ -n "$write" ]; then
		describe || bad=1
		continue
	fi
	for last in "$folder/$name"-[0-9]*-"$machine".abi; do :; done
	[ -e "$last" ] || continue
	abidiff --no-added-syms --fail-no-debug-info --headers-dir2 include/ttmem "$last" "$library" || bad=1
	echo "compared with $(basename "$last" .abi)"
	compared=$((compared + 1))
done

if [ "$compared" -eq 0 ] && [ -z "$write" ]; then
	echo "no library is built, or none is described for $machine"
	exit 77
fi
exit "$bad"
