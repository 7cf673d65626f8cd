#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the packages in a clean Debian or Ubuntu, compares them with those in dist/ where both come from the same
# release, then installs, uses and purges them in another clean one.
#
# usage: run.sh RELEASE: 12, 13, 22.04 or 24.04, as root, after "./dev package"

set -eu
cd "$(dirname "$0")/../.."
ROOT=$PWD
. tools/dev/common.sh
. tools/dev/system.sh

system_named "${1-}"
folder=$ROOT/build/package/$release
log=$ROOT/build/logs/package-test-$release.log
: >"$log"
mkdir -p "$folder"

# builder: a system with what the build needs. It is kept as long as that does not change.
builder() {
	key=$(sed "/^\$/q" "$folder/tree/debian/control" | sha256sum)
	if [ "$(cat "$folder/builder.key" 2>/dev/null)" != "$key" ]; then
		rm -f "$folder/builder.key"
		system_fresh "$folder/builder"
		mkdir "$folder/builder/source"
		cp -r "$folder/tree/debian" "$folder/builder/source/"
		system_inside "$folder/builder" sh -euc '
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
	system_inside "$folder/builder" sh -euc 'cd /source && TTMEM_DASHBOARD=enabled dpkg-buildpackage -us -uc -b'
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
	system_fresh "$folder/clean"
	mkdir "$folder/clean/dist"
	cp "$folder"/debs/*.deb dist/*.whl tests/package/inside.sh "$folder/clean/dist/"
	system_inside "$folder/clean" sh -eu /dist/inside.sh
}

. tools/dev/package.sh
system_lock
step "a plain system" system_base
step "the source release" package_tree "$folder/tree"
step "what the build needs" builder
step "build" build
if [ "$(. /etc/os-release && echo "$ID $VERSION_ID")" = "debian $release" ]; then
	step "the same bytes as in dist/" compare
	step "the same wheel again" compare_wheel
fi
step "install, use, purge" use
grep '^ok ' "$log" || true
