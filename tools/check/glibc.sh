#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What is built here also runs on Ubuntu 22.04, which has glibc 2.35: no file needs a newer symbol. What goes into
# applications or into the wheel needs none newer than 2.34. Newer machines than Debian 12 build programs for
# themselves only.
#
# usage: glibc.sh [NEWEST FILE...]: only these files

set -u
cd "$(dirname "$0")/../.." || exit 1

build=${TTMEM_BUILD:-build}
bad=0
seen=0

# check NEWEST FILE...
check() {
	allowed=$1
	shift
	for file; do
		[ -e "$file" ] || continue
		seen=$((seen + 1))
		newest=$(objdump -T "$file" | grep -o 'GLIBC_[0-9][0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
		[ "$(printf '%s\n' "$newest" "$allowed" | sort -V | tail -n 1)" != "$allowed" ] || continue
		echo "$file needs GLIBC_$newest, at most $allowed is allowed; avoid:"
		objdump -T "$file" | grep "GLIBC_$newest" | sed 's/.*GLIBC/    GLIBC/'
		bad=1
	done
}

if [ $# -gt 0 ]; then
	check "$@"
else
	check 2.34 "$build"/src/lib/libttmem.so "$build"/src/metal/libttmem-metal.so \
		"$build"/python/ttmem/*.abi3.so "$build"/src/cli/ttmem-wheel
	here=$(getconf GNU_LIBC_VERSION | sed 's/.* //')
	if [ "$(printf '%s\n' "$here" 2.36 | sort -V | tail -n 1)" = 2.36 ]; then
		check 2.35 "$build"/src/cli/ttmem "$build"/src/daemon/ttmemd "$build"/src/legacy/program/ttmem-legacy \
			"$build"/src/query/libttmem-query.so
	fi
fi

if [ "$seen" -eq 0 ]; then
	echo "nothing is built"
	exit 77
fi
echo "$seen files"
exit "$bad"
