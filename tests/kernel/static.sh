#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# static.sh VERSION WORK: the module with what can be found without running it: all that the kernel's own
# build can warn of (W=1), sparse and the compiler's analyzer, in one go. One line of a warning is a failure.

set -u
cd "$(dirname "$0")/../.." || exit 1

version=$1 work=$2
headers=/usr/src/linux-headers-$version
name=kernel-static-${version%%-*}

if ! command -v sparse >/dev/null; then
	echo "$name: no sparse: apt-get install sparse"
	echo "$name 0 1 0" >>"${TTMEM_RESULTS:-/dev/null}"
	exit 1
fi
rm -rf "$work"
mkdir -p "$work"
# The kernel's makefiles cannot work in a folder with a blank in its path.
module=$(mktemp -d) || exit 1
trap 'rm -rf "$module"' EXIT
cp -r kernel include "$module/"
make -s -C "$headers" M="$module/kernel" W=1 C=2 CF=-Wsparse-error KCFLAGS="-Werror -fanalyzer" modules >"$work/log" 2>&1
code=$?
# Debian's headers come without vmlinux, which that step would need.
if [ "$code" -ne 0 ] || grep -v 'Skipping BTF generation' "$work/log"; then
	cat "$work/log"
	echo "$version: something was found"
	echo "$name 0 1 0" >>"${TTMEM_RESULTS:-/dev/null}"
	exit 1
fi
# When nothing happens the module does nothing: it cannot even ask to be called later. (odd-test.c watches it.)
if nm -u "$module/kernel/ttmem.ko" |
	grep -E 'timer|delayed_work|kthread|kernel_thread|schedule_timeout|sleep_range|msleep'; then
	echo "$version: the module could call itself"
	echo "$name 0 1 0" >>"${TTMEM_RESULTS:-/dev/null}"
	exit 1
fi
echo "$name 1 0 0" >>"${TTMEM_RESULTS:-/dev/null}"
