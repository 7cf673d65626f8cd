# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev dist: the source release of the current commit, dist/ttmem-VERSION.tar.xz, with the dashboard built.
# The same commit gives the same bytes: names are sorted, times are the commit's, owners and modes are fixed.

# pack_release NAME: the folder build/dist/NAME as dist/NAME.tar.xz.
pack_release() {
	tar -C build/dist --sort=name --format=gnu --mtime="@$(git show -s --format=%ct HEAD)" \
		--owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -c "$1" >"build/dist/$1.tar" &&
		# One thread: more would cut the data into other blocks.
		xz -6 --threads=1 --stdout "build/dist/$1.tar" >"dist/$1.tar.xz.new" &&
		mv "dist/$1.tar.xz.new" "dist/$1.tar.xz"
}

dev_dist() {
	[ $# = 0 ] || die "usage: ./dev dist"
	need web dist
	git rev-parse --verify --quiet HEAD >/dev/null || die "dist needs a git clone with a commit"
	git diff --quiet HEAD || say "not in it: what has changed since the last commit"
	version=$(version)
	name=ttmem-$version
	tree=build/dist/$name

	rm -rf "$tree"
	mkdir -p "$tree" dist
	git archive HEAD | tar -x -C "$tree" || die "the commit cannot be unpacked"
	"$PYTHON" -B "$tree/tools/build/dashboard.py" --ship --npm "$(command -v npm)" \
		--source "$tree/web" --work build/dist/page || exit 1
	pack_release "$name" || die "the release cannot be packed"
	rm -rf "$tree" "build/dist/$name.tar"
	say "made dist/$name.tar.xz"
}
