# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev package: Debian packages and a Python wheel of the last commit, in dist/. They are built from the source
# release, so without npm, and the same commit gives the same bytes.
# ./dev package-test: builds, installs and removes them in clean Debian 12 and 13 (tests/package/run.sh).

. tools/dev/dist.sh

# package_tree FOLDER: unpacks the source release there, with Debian's files where debhelper wants them. Times in the
# packages are that of the changelog, which is the commit's.
package_tree() {
	rm -rf "$1"
	mkdir -p "$1"
	tar -C "$1" --strip-components=1 -xf "dist/ttmem-$(version).tar.xz" && cp -r "$1/data/debian" "$1/debian" &&
		cat >"$1/debian/changelog" <<-END
		ttmem ($(version)) unstable; urgency=medium

		  * CHANGELOG.md has the changes.

		 -- $(sed -n 's/^Maintainer: //p' data/debian/control)  $(git show -s --format=%cD HEAD)
		END
}

# Errors fail; the rest is in the log.
package_lint() {
	lintian --fail-on error --info --display-info dist/*.deb >build/logs/lintian.log 2>&1 && return
	grep '^E:' build/logs/lintian.log
	die "lintian found errors (see build/logs/lintian.log)"
}

dev_package() {
	need build docs package
	# shellcheck disable=SC2119 # it has no arguments
	dev_dist
	tree=build/package/here/source
	rm -rf build/package/here
	package_tree "$tree" || die "the source release cannot be unpacked"
	log=$ROOT/build/logs/package.log
	start=$(now)
	(cd "$tree" && TTMEM_DASHBOARD=enabled dpkg-buildpackage -us -uc -b) >"$log" 2>&1 || {
		tail -n 30 "$log"
		die "the packages cannot be built"
	}
	rm -f dist/*.deb dist/*.whl
	cp build/package/here/*.deb dist/
	"$PYTHON" -B tools/build/wheel.py "$tree"/obj-* dist || exit 1
	package_lint
	say "made in $(since "$start") s:"
	ls dist/*.deb dist/*.whl
}

dev_package_test() {
	[ "$(id -u)" = 0 ] || die "package-test makes chroots, which needs root"
	need package system
	set -- "${@:-12 13}"
	dev_package
	# shellcheck disable=SC2068 # a list of words
	for release in $@; do
		sh tests/package/run.sh "$release" || exit 1
	done
}
