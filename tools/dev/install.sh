# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev install: makes a release build and installs it under a prefix. The result works under any prefix
# and for any user.

install_into() {
	meson configure build-release -Dprefix="$1" &&
		compile build-release &&
		meson install -C build-release --no-rebuild
}

dev_install() {
	prefix=/usr/local
	while [ $# -gt 0 ]; do
		case $1 in
		--prefix=*) prefix=${1#--prefix=} ;;
		--prefix)
			[ $# -gt 1 ] || die "--prefix needs a folder"
			prefix=$2
			shift
			;;
		*) die "usage: ./dev install [--prefix P]" ;;
		esac
		shift
	done
	case $prefix in
	/*) ;;
	'') die "--prefix needs a folder" ;;
	*) prefix=$ROOT/$prefix ;;
	esac

	need build docs
	build_release || die "the build failed"
	# Only the install rules depend on the prefix, so changing it recompiles nothing.
	if install_into "$prefix" >build/logs/install.log 2>&1; then
		say "installed into $prefix"
	else
		tail -n 30 build/logs/install.log
		die "the installation failed"
	fi
}
