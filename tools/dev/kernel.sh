# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev kernel-test: the module in real kernels. Each of those that Debian offers is booted in QEMU.

# kernels: versions whose image and headers are there, one a line.
kernels() {
	for image in /boot/vmlinuz-6.1.*-cloud-amd64 /boot/vmlinuz-6.12.*-cloud-amd64; do
		version=${image#/boot/vmlinuz-}
		[ -e "$image" ] && [ -d "/usr/src/linux-headers-$version" ] && say "$version"
	done
}
