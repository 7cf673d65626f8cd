#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# static.sh VERSION WORK: the module with what a compiler and sparse can find without running it. One line of
# a warning is a failure.

set -u
cd "$(dirname "$0")/../.." || exit 1

version=$1 work=$2
headers=/usr/src/linux-headers-$version
bad=0

# check NAME MAKE-ARGUMENT...: builds everything anew.
check() {
	name=$1
	shift
	rm -rf "$work"
	mkdir -p "$work"
	cp -r kernel include "$work/"
	make -s -C "$headers" M="$work/kernel" "$@" modules >"$work/log" 2>&1
	code=$?
	# Debian's headers come without vmlinux, which that step would need.
	if [ "$code" -ne 0 ] || grep -v 'Skipping BTF generation' "$work/log"; then
		cat "$work/log"
		echo "$version: $name found something"
		echo "kernel-static-$name 0 1 0" >>"${TTMEM_RESULTS:-/dev/null}"
		bad=1
	else
		echo "kernel-static-$name 1 0 0" >>"${TTMEM_RESULTS:-/dev/null}"
	fi
}

check warnings W=1 KCFLAGS=-Werror
# When nothing happens the module does nothing: it cannot even ask to be called later. (odd-test.c watches it.)
if nm -u "$work/kernel/ttmem.ko" |
	grep -E 'timer|delayed_work|kthread|kernel_thread|schedule_timeout|sleep_range|msleep'; then
	echo "$version: the module could call itself"
	echo "kernel-static-idle 0 1 0" >>"${TTMEM_RESULTS:-/dev/null}"
	bad=1
else
	echo "kernel-static-idle 1 0 0" >>"${TTMEM_RESULTS:-/dev/null}"
fi
if command -v sparse >/dev/null; then
	check sparse C=2 CF=-Wsparse-error
else
	echo "kernel-static-sparse 0 0 1" >>"${TTMEM_RESULTS:-/dev/null}"
	echo "# skip kernel-static-sparse: no sparse" >>"${TTMEM_RESULTS:-/dev/null}"
fi
check analyzer KCFLAGS=-fanalyzer
exit "$bad"
