#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Programs that were built with an older libttmem.so keep working: nothing that the last release had has gone or
# changed. tests/abi has its description, made by "abi.sh --write" when a version is released.
#
# usage: abi.sh [FILE]: compare with this description

set -u
cd "$(dirname "$0")/../.." || exit 1

library=${TTMEM_BUILD:-build}/src/lib/libttmem.so
machine=$(uname -m)

if ! command -v abidiff >/dev/null; then
	echo "no abidiff"
	exit 77
fi
if [ ! -e "$library" ]; then
	echo "$library is not built"
	exit 77
fi

if [ "${1:-}" = --write ]; then
	version=$(sed -n 's/^#define TTMEM_VERSION_[A-Z]* //p' include/ttmem/ttmem.h | paste -s -d .)
	rm -f tests/abi/*.abi
	exec abidw --exported-interfaces-only --headers-dir include/ttmem --drop-private-types --no-show-locs \
		--no-comp-dir-path --no-corpus-path --out-file "tests/abi/libttmem-$version-$machine.abi" "$library"
fi

[ $# -gt 0 ] || set -- tests/abi/*-"$machine".abi
if [ ! -e "$1" ]; then
	echo "no description for $machine"
	exit 77
fi
# Of two descriptions the later one is meant.
for last; do :; done
abidiff --no-added-syms --fail-no-debug-info --headers-dir2 include/ttmem "$last" "$library" &&
	echo "compatible with $(basename "$last" .abi)"
