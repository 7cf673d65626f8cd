#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Mounts a /dev of its own, with what programs need and no hardware, below a system's root.
#
# usage: mount-dev.sh ROOT, in a mount namespace of its own

set -eu
cd "$1"
mount -t tmpfs -o mode=755 tmpfs dev
for node in null zero full random urandom tty; do
	touch "dev/$node"
	mount --bind "/dev/$node" "dev/$node"
done
mkdir dev/shm dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
