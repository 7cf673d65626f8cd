#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the packages in a clean Debian or Ubuntu, compares them with those in dist/ where both come from the same
# release, then installs, uses and purges them in another clean one. Debian comes from this machine's own mirror.
#
# usage: run.sh RELEASE: 12, 13, 22.04 or 24.04, as root, after "./dev package"

set -eu
cd "$(dirname "$0")/../.."
ROOT=$PWD
. tools/dev/common.sh

release=$1
case $release in
12) system=Debian name=bookworm ;;
13) system=Debian name=trixie ;;
22.04) system=Ubuntu name=jammy ;;
24.04) system=Ubuntu name=noble ;;
*) die "usage: run.sh 12|13|22.04|24.04" ;;
esac
folder=$ROOT/build/package/$release
log=$ROOT/build/logs/package-test-$release.log
: >"$log"
mkdir -p "$folder"

# step WHAT COMMAND...
step() {
	what=$1
	shift
	start=$(now)
	# Not as a condition: there, -e would not count.
	set +e
	(
		set -e
		"$@"
	) >>"$log" 2>&1
	code=$?
	set -e
	if [ "$code" -eq 0 ]; then
		printf 'ok   %s %s: %-40s %7s s\n' "$system" "$release" "$what" "$(since "$start")"
	else
		printf 'FAIL %s %s: %-40s %7s s\n' "$system" "$release" "$what" "$(since "$start")"
		tail -n 40 "$log"
		exit 1
	fi
}

# sources: the lines of a sources.list.
sources() {
	if [ "$system" = Debian ]; then
		# shellcheck disable=SC2016 # apt's own dollars
		mirror=$(apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(REPO_URI)' |
			awk '$1 == "Debian" && $2 !~ /-/ { print $3; exit }')
		[ -n "$mirror" ] || { echo "apt knows no mirror of Debian" >&2; return 1; }
		echo "deb $mirror $name main"
		return
	fi
	keys=/usr/share/keyrings/ubuntu-archive-keyring.gpg
	[ -e "$keys" ] || { echo "no $keys: Debian 13's package ubuntu-archive-keyring has it" >&2; return 1; }
	for suite in "$name" "$name-updates"; do
		echo "deb [signed-by=$keys] http://archive.ubuntu.com/ubuntu $suite main universe"
	done
}

# base: a plain system, made once.
base() {
	[ ! -e "$folder/base.tar" ] || return 0
	from=$(sources)
	echo "$from" |
		mmdebstrap --variant=minbase --include=apt --dpkgopt=force-unsafe-io "$name" "$folder/base.new.tar" -
	mv "$folder/base.new.tar" "$folder/base.tar"
}

# fresh ROOT: that system in a folder.
fresh() {
	rm -rf "$1"
	mkdir -p "$1"
	tar -C "$1" -xf "$folder/base.tar"
	cp /etc/resolv.conf "$1/etc/resolv.conf"
	echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/quick"
}

# inside ROOT COMMAND...: in there, with processes and mounts of its own.
inside() {
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --pid --fork --kill-child sh -euc '
		mount_dev=$1
		cd "$2"
		shift 2
		mount --make-rprivate /
		mount -t proc proc proc
		sh "$mount_dev" .
		exec chroot . env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
			LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy=$http_proxy} "$@"
	' sh "$ROOT/tests/container/mount-dev.sh" "$@"
}

# builder: a system with what the build needs. It is kept as long as that does not change.
builder() {
	key=$(sed "/^\$/q" "$folder/tree/debian/control" | sha256sum)
	if [ "$(cat "$folder/builder.key" 2>/dev/null)" != "$key" ]; then
		rm -f "$folder/builder.key"
		fresh "$folder/builder"
		mkdir "$folder/builder/source"
		cp -r "$folder/tree/debian" "$folder/builder/source/"
		inside "$folder/builder" sh -euc '
			apt-get update -q
			apt-get install -y -q --no-install-recommends build-essential fakeroot
			cd /source && apt-get build-dep -y -q --no-install-recommends ./
		'
		say "$key" >"$folder/builder.key"
	fi
}

build() {
	rm -rf "$folder/builder/source" "$folder/builder"/*.deb "$folder/builder"/*.buildinfo "$folder/builder"/*.changes
	cp -r "$folder/tree" "$folder/builder/source"
	inside "$folder/builder" sh -euc 'cd /source && TTMEM_DASHBOARD=enabled dpkg-buildpackage -us -uc -b'
	rm -rf "$folder/debs"
	mkdir "$folder/debs"
	mv "$folder/builder"/*.deb "$folder/debs/"
}

# Another machine, another folder, the same bytes.
compare() {
	for deb in "$folder"/debs/*.deb; do
		cmp "$deb" "dist/$(basename "$deb")" || return 1
	done
}

# The wheel comes from the build of ./dev package: made again, it is the same.
compare_wheel() {
	rm -rf "$folder/wheel"
	"$PYTHON" -B tools/build/wheel.py build/package/here/source/obj-* "$folder/wheel"
	cmp dist/*.whl "$folder"/wheel/*.whl
}

use() {
	fresh "$folder/clean"
	mkdir "$folder/clean/dist"
	cp "$folder"/debs/*.deb dist/*.whl tests/package/inside.sh "$folder/clean/dist/"
	inside "$folder/clean" sh -eu /dist/inside.sh
}

. tools/dev/package.sh
step "a plain system" base
step "the source release" package_tree "$folder/tree"
step "what the build needs" builder
step "build" build
if [ "$(. /etc/os-release && echo "$ID $VERSION_ID")" = "debian $release" ]; then
	step "the same bytes as in dist/" compare
	step "the same wheel again" compare_wheel
fi
step "install, use, purge" use
grep '^ok ' "$log" || true
