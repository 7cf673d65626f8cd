#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The tests on a kernel of our own, with KASAN, lockdep, kmemleak and UBSAN. Built once from Debian's source
# package, which takes some minutes, and kept in the user's cache folder until source or configuration
# change: every checkout uses the same one.
# TTMEM_KERNEL_SOURCE names a linux-source-6.1.tar.xz that lies elsewhere, TTMEM_BUILD the programs' build.

set -u
cd "$(dirname "$0")/../.." || exit 1

archive=${TTMEM_KERNEL_SOURCE:-/usr/src/linux-source-6.1.tar.xz}
build=${TTMEM_BUILD:-$PWD/build}
work=$PWD/build/kernel/debug
cache=${XDG_CACHE_HOME:-${HOME:-$PWD/build}/.cache}/ttmem/debug-kernel
tree=$cache/linux-source-6.1
stamp=$(cat "$archive" tests/kernel/debug.config 2>/dev/null | sha256sum)

fail() {
	echo "$*"
	echo "debug-kernel 0 1 0" >>"${TTMEM_RESULTS:-/dev/null}"
	exit 1
}

[ -e "$archive" ] || fail "no $archive: apt-get install linux-source-6.1"
if [ "$(cat "$cache/stamp" 2>/dev/null)" != "$stamp" ]; then
	rm -rf "$cache"
	mkdir -p "$cache"
	tar -C "$cache" -xf "$archive" || fail "cannot unpack $archive"
	{
		make -s -C "$tree" tinyconfig &&
			(cd "$tree" && scripts/kconfig/merge_config.sh -m .config "$OLDPWD/tests/kernel/debug.config") &&
			make -s -C "$tree" olddefconfig
	} >"$cache/log" 2>&1 || fail "the debug kernel cannot be configured: $(tail -n 5 "$cache/log")"
	for option in KASAN PROVE_LOCKING DEBUG_KMEMLEAK UBSAN MMU_NOTIFIER MEMCG SECCOMP_FILTER; do
		grep -q "^CONFIG_$option=y" "$tree/.config" || fail "CONFIG_$option was dropped"
	done
	make -s -C "$tree" -j"$(nproc)" bzImage modules modules_prepare >"$cache/log" 2>&1 ||
		fail "the debug kernel does not build: $(tail -n 20 "$cache/log")"
	echo "$stamp" >"$cache/stamp"
fi
export TTMEM_KERNEL_HEADERS="$tree" TTMEM_KERNEL_IMAGE="$tree/arch/x86/boot/bzImage"
export TTMEM_KERNEL_NAME=debug TTMEM_KERNEL_SECONDS="${TTMEM_KERNEL_SECONDS:-6000}"
export TTMEM_KERNEL_APPEND="kasan_multi_shot kmemleak=on ttmem_storm=60" TTMEM_KERNEL_MEMORY=1536
# The same tests, and those that only this kernel can do. Not lib-family, which wants every event: this kernel is so
# slow at making books that threads give up waiting for one, and their events are turned away (and counted).
export TTMEM_KERNEL_MORE="kernel-fail kernel-daemon"
exec sh tests/kernel/boot.sh debug "$build" "$work/machine"
