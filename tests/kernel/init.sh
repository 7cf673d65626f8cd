#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
#
# The only program of the machine that boot.sh boots: loads the module, runs the tests, unloads, and powers
# off. What boot.sh looks for begins with @@.

export PATH=/bin LD_LIBRARY_PATH=/ours
echo # what the firmware leaves behind on the line
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm /dev/pts /run /sys/fs/cgroup
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
chmod 1777 /tmp
ip link set lo up
echo 1 >/proc/sys/kernel/printk # the console is for the tests

insmod /ttmem.ko || echo "@@result load 0 1 0"
export TTMEM_RESULTS=/tmp/results TTMEM_UNIT_TIMEOUT=10 TTMEM_TEST_QUICK=1 TTMEM_IN_KERNEL_TEST=1
while read -r program; do
	: >"$TTMEM_RESULTS"
	"/bin/$program" >"/tmp/$program.log" 2>&1 || {
		echo "---- $program: $?"
		[ -s "$TTMEM_RESULTS" ] || echo "${program%-test} 0 1 0" >"$TTMEM_RESULTS"
	}
	cat "/tmp/$program.log"
	sed 's/^/@@result /' "$TTMEM_RESULTS"
	echo "$program: up $(cut -d' ' -f1 /proc/uptime) s"
done </tests

# The last book's file system ends a moment after the book.
unload() {
	tries=50
	until rmmod ttmem 2>/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

if unload; then
	echo "@@unloaded"
	# A module must come back as it went.
	insmod /ttmem.ko && rmmod ttmem && echo "@@result reload 1 0 0"
fi
# Only a debug kernel has it. Objects count as lost once two looks in a row found nobody who knows them.
if mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null && [ -e /sys/kernel/debug/kmemleak ]; then
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	echo scan >/sys/kernel/debug/kmemleak
	kmemleak=/sys/kernel/debug/kmemleak
fi
echo "@@log"
dmesg
[ -z "${kmemleak:-}" ] || cat "$kmemleak"
echo "@@end"
poweroff -f
