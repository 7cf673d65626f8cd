#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Usage: archive.sh OUTPUT SCRIPT OBJCOPY AR OBJECT... -- LINK...
#
# Makes one object from many: LINK joins them, with all code in one section (SCRIPT); then symbols that are
# hidden in the shared library become local, so that they cannot clash with the program's.

set -eu

output=$1
script=$2
objcopy=$3
ar=$4
shift 4

# Moves the words before "--" behind the others.
while [ "$1" != -- ]; do
	set -- "$@" "$1"
	shift
done
shift

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$@" -Wl,-T,"$script" -o "$work/joined.o"
"$objcopy" --localize-hidden "$work/joined.o" "$work/ttmem.o"
rm -f "$output"
"$ar" rcsD "$output" "$work/ttmem.o"
