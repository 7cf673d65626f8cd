#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Boots a real systemd as pid 1 in namespaces. It sees the files of this machine through an overlay, so that
# all changes are gone at the end. Started by tests/integration/support/machine.py with namespaces of its own for
# mounts, processes, host name, IPC, network and control groups.
#
# usage: boot.sh FOLDER INSTALLED: an empty folder, and the files to put over those of this machine

set -eu
folder=$1
installed=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

# cannot WHAT: skips the test, because this environment does not allow the mount.
cannot() {
	echo "cannot mount $1 here" >&2
	exit 77
}

mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
cp -a "$installed/." "$folder/upper/"
mount -t overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" overlay "$folder/root" ||
	cannot "an overlay"

cd "$folder/root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys || cannot sysfs
mount -t cgroup2 cgroup2 sys/fs/cgroup || cannot cgroup2
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
# The units enabled on this machine are not enabled in there, and the journal is separate.
mount -t tmpfs -o mode=755 tmpfs etc/systemd/system
mount -t tmpfs -o mode=755 tmpfs var/log
# So are the daemon's folders: another ttmemd may have left files there, perhaps as root.
for own in var/lib/ttmem etc/ttmem; do
	mkdir -p "$own"
	mount -t tmpfs -o mode=755 tmpfs "$own"
done

sh "$here/../container/mount-dev.sh" .

# The few units of systemd that are needed; the others would look for hardware.
mkdir run/units
cp "$here"/units/* run/units/
for unit in systemd-journald.service systemd-journald.socket systemd-journald-dev-log.socket; do
	ln -s "/lib/systemd/system/$unit" run/units/
done
for target in sysinit basic shutdown umount final sockets multi-user; do
	printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' "$target" >"run/units/$target.target"
done

mkdir -p run/old
pivot_root . run/old
umount -l /run/old
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin container=ttmem-test \
	SYSTEMD_UNIT_PATH=/etc/systemd/system:/run/systemd/system:/usr/local/lib/systemd/system:/run/units \
	SYSTEMD_GENERATOR_PATH=/nonexistent \
	/lib/systemd/systemd --system --unit=boot.target --show-status=0 --log-target=journal </dev/null
