# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# Set-up on a fresh Debian 12: looks for what each group of commands needs, and installs packages only for
# what is missing. apt is not called if nothing is.

# needs GROUP: lines "what-to-look-for package".
needs() {
	case $1 in
	build) cat <<-'END' ;;
		cmd:gcc gcc
		hdr:stdio.h libc6-dev
		hdr:linux/memfd.h linux-libc-dev
		hdr:jansson.h libjansson-dev
		hdr:sqlite3.h libsqlite3-dev
		hdr:zlib.h zlib1g-dev
		hdr:zstd.h libzstd-dev
		hdr:systemd/sd-daemon.h libsystemd-dev
		hdr:elfutils/libdw.h libdw-dev
		hdr:curses.h libncurses-dev
		cmd:g++ g++
		hdr:microhttpd.h libmicrohttpd-dev
		hdr:curl/curl.h libcurl4-gnutls-dev
		file:/usr/bin/python3-config python3-dev
		cmd:meson meson
		cmd:ninja ninja-build
		cmd:pkg-config pkg-config
		END
	docs) say cmd:scdoc scdoc ;;
	web) cat <<-'END' ;;
		cmd:node nodejs
		cmd:npm npm
		END
	dist) cat <<-'END' ;;
		cmd:git git
		cmd:xz xz-utils
		END
	browser) cat <<-'END' ;;
		cmd:chromium chromium
		cmd:firefox-esr firefox-esr
		END
	integration) cat <<-'END' ;;
		file:/usr/bin/python3 python3
		cmd:gdb gdb
		py:pytest python3-pytest
		py:xdist python3-pytest-xdist
		py:pytest_forked python3-pytest-forked
		py:pytest_rerunfailures python3-pytest-rerunfailures
		py:jsonschema python3-jsonschema
		py:pip python3-pip
		py:setuptools python3-setuptools
		py:wheel python3-wheel
		cmd:prometheus prometheus
		cmd:heaptrack_print heaptrack
		cmd:protoc protobuf-compiler
		cmd:tmux tmux
		cmd:zstd zstd
		cmd:patchelf patchelf
		cmd:g++ g++
		cmd:cmake cmake
		file:/usr/include/gtest/gtest.h libgtest-dev
		file:/usr/include/catch2/catch.hpp catch2
		cmd:openssl openssl
		cmd:curl curl
		py:yaml python3-yaml
		cmd:fish fish
		cmd:zsh zsh
		file:/usr/lib/x86_64-linux-gnu/libdebuginfod.so.1 libdebuginfod1
		END
	systemd) cat <<-'END' ;;
		file:/lib/systemd/systemd systemd
		cmd:nsenter util-linux
		cmd:setpriv util-linux
		END
	check) cat <<-'END' ;;
		file:/usr/bin/python3 python3
		cmd:g++ g++
		file:/usr/include/gtest/gtest.h libgtest-dev
		file:/usr/include/catch2/catch.hpp catch2
		cmd:readelf binutils
		cmd:pahole pahole
		cmd:abidiff abigail-tools
		END
	cross) cat <<-'END' ;;
		cmd:aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
		file:/usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross
		cmd:qemu-aarch64 qemu-user
		END
	lint) cat <<-'END' ;;
		file:/usr/bin/python3 python3
		cmd:clang clang
		cmd:clang-format clang-format
		cmd:clang-tidy clang-tidy
		cmd:codespell codespell
		cmd:shellcheck shellcheck
		END
	sanitize) say cmd:setarch util-linux ;;
	fuzz) cat <<-'END' ;;
		cmd:clang clang
		cmd:llvm-symbolizer llvm
		libfuzzer libclang-rt-14-dev
		END
	soak) say cmd:valgrind valgrind ;;
	kernel) cat <<-'END' ;;
		cmd:qemu-system-x86_64 qemu-system-x86
		glob:/boot/vmlinuz-6.1.*-cloud-amd64 linux-image-cloud-amd64
		glob:/usr/src/linux-headers-6.1.*-cloud-amd64 linux-headers-cloud-amd64
		glob:/boot/vmlinuz-6.12.*-cloud-amd64 linux-image-6.12-cloud-amd64
		glob:/usr/src/linux-headers-6.12.*-cloud-amd64 linux-headers-6.12-cloud-amd64
		cmd:make make
		cmd:cpio cpio
		cmd:busybox busybox-static
		cmd:sparse sparse
		file:/usr/sbin/dkms dkms
		file:/usr/sbin/modprobe kmod
		cmd:udevadm udev
		END
	container) cat <<-'END' ;;
		cmd:podman podman
		cmd:docker-compose docker-compose
		cmd:buildah buildah
		cmd:crun crun
		cmd:mmdebstrap mmdebstrap
		cmd:ip iproute2
		cmd:pgrep procps
		END
	package) cat <<-'END' ;;
		file:/usr/bin/dh debhelper
		file:/usr/bin/dh_dkms dh-dkms
		cmd:dh_python3 dh-python
		hdr:gelf.h libelf-dev
		file:/usr/share/pkgconfig/systemd.pc systemd
		cmd:dpkg-buildpackage dpkg-dev
		cmd:fakeroot fakeroot
		cmd:lintian lintian
		cmd:patchelf patchelf
		END
	system) cat <<-'END' ;;
		cmd:git git
		cmd:mmdebstrap mmdebstrap
		cmd:unshare util-linux
		cmd:flock util-linux
		END
	debug-kernel) cat <<-'END' ;;
		file:/usr/src/linux-source-6.1.tar.xz linux-source-6.1
		cmd:flex flex
		cmd:bison bison
		cmd:bc bc
		cmd:xz xz-utils
		hdr:gelf.h libelf-dev
		END
	esac
}

# present WHAT: whether one of the above exists.
present() {
	case $1 in
	cmd:*) have "${1#cmd:}" ;;
	hdr:*) printf '#include <%s>\n' "${1#hdr:}" | gcc -E - >/dev/null 2>&1 ;;
	file:*) [ -e "${1#file:}" ] ;;
	glob:*) # shellcheck disable=SC2086 # a pattern to expand
		set -- ${1#glob:}
		[ -e "$1" ] ;;
	py:*) "$PYTHON" -c "import ${1#py:}" >/dev/null 2>&1 ;;
	libfuzzer) set -- "$(clang -print-runtime-dir 2>/dev/null)"/libclang_rt.fuzzer-*.a
		[ -e "$1" ] ;;
	esac
}

# missing GROUP: the packages to install, on one line.
missing() {
	needs "$1" | while read -r what package; do
		present "$what" || printf '%s ' "$package"
	done
}

apt_install() {
	$AS_ROOT env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
		--no-install-recommends -o DPkg::Lock::Timeout=300 "$@" >>build/logs/apt.log 2>&1
}

# A package that could not be installed is not tried again for a day, so that later runs stay quick.
given_up() {
	[ -n "$(find build/logs -name "no-$1" -mtime -1 2>/dev/null)" ]
}

# install_group GROUP: all packages at once, or one by one if that fails.
install_group() {
	group=$1
	# shellcheck disable=SC2046 # a list of words
	set -- $(missing "$group")
	[ $# -eq 0 ] && return
	say "installing for $group: $*"
	apt_install "$@" && return
	for package; do
		apt_install "$package" && continue
		say "could not install $package (see build/logs/apt.log)"
		touch "build/logs/no-$package"
	done
}

# need GROUP...: installs what is missing; if this user cannot, prints the command and exits.
need() {
	mkdir -p build/logs
	wanted=
	for group; do
		for package in $(missing "$group"); do
			given_up "$package" || wanted="$wanted $package"
		done
	done
	[ -z "$wanted" ] && return

	if [ "$(id -u)" = 0 ]; then
		AS_ROOT=
	elif have sudo && sudo -n true 2>/dev/null; then
		AS_ROOT="sudo -n"
	else
		say "Some packages are missing and this user cannot install them. Please run:"
		say "    sudo apt-get install -y --no-install-recommends$wanted"
		exit 1
	fi
	have apt-get || die "not a Debian system; please install:$wanted"

	# Continue if the mirror does not respond: the cached lists may suffice.
	$AS_ROOT apt-get update -q >>build/logs/apt.log 2>&1 ||
		say "apt-get update failed (see build/logs/apt.log); trying with what is known"
	for group; do
		install_group "$group"
	done
	[ -z "$(missing build)" ] || die "cannot build without: $(missing build)(see build/logs/apt.log)"
}
