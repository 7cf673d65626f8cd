#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Usage: archive.sh OUTPUT SCRIPT OBJCOPY AR OBJECT... -- LINK...
#
# One object from many: LINK joins them with its code in one section (SCRIPT); then what is hidden in the
# shared library becomes local, so that no name of ours can be in the way of one of the program's.

set -eu

output=$1
script=$2
objcopy=$3
ar=$4
shift 4

# The words before "--" go behind the others.
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
