#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs one suite of "./dev test". It is a separate program so that it can run under timeout; the build
# exists already. Long-running commands are exec'd, because timeout signals only its own child.

set -u
ROOT=$PWD
. tools/dev/common.sh
. tools/dev/build.sh

# Suites run with default settings, whatever is set in the developer's shell.
unset TTMEM TTMEM_SOCKET TTMEM_OFFER TT_ALLOC_TRACKING_ENABLED

# meson_suite NAME [OPTION]...: "unit-recording" is also "unit-recording-read".
meson_suite() {
	name=$1
	shift
	for found in $(suites build); do
		case $found in
		"$name" | "$name"-*) set -- "$@" --suite "$found" ;;
		esac
	done
	case $* in
	*--suite*) exec meson test -C build --no-rebuild --print-errorlogs "$@" ;;
	esac
	must_have_suites build "$name"
}

# alone COMMAND...: in a pid namespace of its own. Users other than root need a user namespace for that.
alone() {
	[ "$(id -u)" = 0 ] || set -- --user --map-current-user "$@"
	unshare --pid --fork --kill-child --mount-proc "$@"
}

# finish_others NAME: waits for what runs beside, "$others" as PID:NUMBER, and prints its output. Sets "$code".
finish_others() {
	for other in $others; do
		wait "${other%:*}" || code=$?
		cat "build/logs/$1-${other#*:}.log"
	done
}

# pytest_part SHARE ARGUMENT...
pytest_part() {
	share=$1
	shift
	alone sh -c '"$@"' sh "$PYTHON" -B -m pytest "$@" -q -rs --share "$share" 2>&1
}

# pytest_suite ARGUMENT...
# The commands look at every process of the machine, so concurrent tests would see each other's processes.
# Each run therefore has a pid namespace of its own, and takes the next test file that no other run has
# taken; where namespaces are not allowed there is only one run.
pytest_suite() {
	TTMEM_BUILD=$ROOT/build
	export TTMEM_BUILD
	if ! alone true 2>/dev/null; then
		exec "$PYTHON" -B -m pytest "$@" -q -rs
	fi
	share=build/logs/share
	rm -rf "$share"
	mkdir "$share"
	runs=$(waiting_jobs)
	[ "$runs" -le 8 ] || runs=8
	code=0 others=
	while [ "$runs" -gt 1 ]; do
		runs=$((runs - 1))
		pytest_part "$share" "$@" >"build/logs/pytest-$runs.log" &
		others="$others $!:$runs"
	done
	pytest_part "$share" "$@" || code=$?
	finish_others pytest
	return "$code"
}

integration() {
	pytest_suite tests/integration --ignore=tests/integration/trust
}

# Other users, containers and broken applications as attackers: what one user does costs no other user anything.
trust() {
	pytest_suite tests/integration/trust
}

# The output of whole programs, compared with files: tests/golden/README.md.
golden() {
	TTMEM_BUILD=$ROOT/build "$PYTHON" -B tests/golden/run.py
	code=$?
	[ "$code" -eq 77 ] || return "$code"
	record golden 0 0 1
	record "# skip golden: needs root"
}

record() {
	say "$*" >>"${TTMEM_RESULTS:-/dev/null}"
}

# Each check is one test. It exits with 77 and a reason if it cannot run here.
check() {
	bad=0
	for script in tools/check/*.sh; do
		name=$(basename "$script" .sh)
		say "== $name"
		output=$(TTMEM_BUILD=build sh "$script" 2>&1)
		code=$?
		[ -z "$output" ] || say "$output"
		case $code in
		0) record "check-$name" 1 0 0 ;;
		77)
			record "check-$name" 0 0 1
			record "# skip $name: $(say "$output" | tail -n 1)"
			;;
		*)
			record "check-$name" 0 1 0
			bad=1
			;;
		esac
	done
	return "$bad"
}

# What can be checked about memory order without an aarch64 processor: the barriers are in the writer and reader.
cross_barriers() {
	for module in hot:ishst writer-make:ishst log:ishld idle-counters:ishld reader:ishld view:ishld; do
		name=${module%:*}.c.o
		object=$(find build-aarch64/src/book/libttmem-book.a.p -name "$name" -o -name "*_$name")
		if ! aarch64-linux-gnu-objdump -d "$object" | grep -q "dmb[[:space:]]*${module#*:}"; then
			say "${module%:*} has no dmb ${module#*:}"
			record cross-barriers 0 1 0
			return 1
		fi
	done
	record cross-barriers 1 0 0
}

# libttmem-metal.so calls functions of C++ from C, and there is no C++ library for aarch64 here. clang needs none.
cross_convention() {
	if ! have clang++; then
		record cross-convention 0 0 1
		return 0
	fi
	if ! {
		clang++ --target=aarch64-linux-gnu -std=c++20 -O2 -ffreestanding -fno-exceptions -fno-rtti -fPIC \
			-c tests/metal/convention.cpp -o build-aarch64/convention-cpp.o &&
			aarch64-linux-gnu-gcc -O2 -Isrc tests/metal/convention.c build-aarch64/convention-cpp.o \
				-o build-aarch64/convention &&
			qemu-aarch64 -L /usr/aarch64-linux-gnu build-aarch64/convention
	}; then
		record cross-convention 0 1 0
		return 1
	fi
	record cross-convention 1 0 0
}

# The book's layout, its writer and its reader must work on the other architecture too, and so must walking stacks, by
# frame pointers and by unwind tables, with signed return addresses and through signal handlers, and what learns about
# tt-metal's objects and calls their functions. Memory order is not tested: qemu on x86 executes loads and stores in
# x86's order; docs/architecture.md says what is known about it. The whole library is not tested either: qemu does not
# wipe pages in children.
cross() {
	if ! have aarch64-linux-gnu-gcc || ! have qemu-aarch64; then
		record cross 0 0 1
		record "# skip cross: no aarch64 compiler or no qemu-aarch64"
		return 0
	fi
	configure build-aarch64 --cross-file tools/cross/aarch64.ini -Dlibrary_only=true || return 1
	# Emulation is slow. meson builds only what these tests need.
	export TTMEM_UNIT_TIMEOUT=10 TTMEM_TEST_QUICK=1
	must_have_suites build-aarch64 unit-book unit-metal || return 1
	meson test -C build-aarch64 --print-errorlogs --suite unit-book --suite unit-metal || return 1
	# Nothing tests all of it, but it must build.
	ninja --quiet -C build-aarch64 src/metal/libttmem-metal.so || return 1
	cross_barriers || return 1
	cross_convention || return 1
	exec meson test -C build-aarch64 --print-errorlogs lib-stack lib-stack-inside lib-bounds lib-fp-or-rule \
		lib-rules lib-eh-frame lib-unwind lib-unwind-inside lib-unwind-harm
}

# web_skip WHY: a missing program or package is not a failure.
web_skip() {
	record web 0 0 1
	record "# skip web: $*"
	say "skipped: $*"
}

web_part() {
	set -- node build/web-tests/run.mjs --part "$1"
	# Only root can configure the network of a namespace.
	[ "$(id -u)" != 0 ] || set -- --net "$PYTHON" -B tests/web/alone.py "$@"
	alone "$@" 2>&1
}

# The dashboard in a browser, in namespaces of its own: the daemon sees no other processes, and requests to
# other machines fail. Parts run in parallel, like the integration tests; a browser needs more than those.
web() {
	for program in node npm chromium; do
		have "$program" || { web_skip "no $program"; return 0; }
	done
	if ! grep -q /assets/index- build/web/assets-data.c 2>/dev/null; then
		web_skip "the dashboard was not built (see build/web/work/build.log)"
		return 0
	fi
	if [ ! -d build/web/work/node_modules ]; then
		web_skip "the dashboard was not built here: it is that of the release"
		return 0
	fi
	(cd build/web/work && npm run --silent check) || return 1
	rm -rf build/web/work/test
	cp -r web/test build/web/work/
	(cd build/web/work && npm run --silent test) || return 1
	browser_tests || { web_skip "$why"; return 0; }
	export TTMEM_BUILD="$ROOT/build" TTMEM_ARTEFACTS="$ROOT/build/artefacts"
	if ! alone true 2>/dev/null; then
		exec node build/web-tests/run.mjs
	fi
	parts=$(($(nproc) + 1))
	[ "$parts" -le 4 ] || parts=4
	code=0 part=1 others=
	while [ "$part" -lt "$parts" ]; do
		web_part "$part/$parts" >"build/logs/web-$part.log" &
		others="$others $!:$part"
		part=$((part + 1))
	done
	web_part "0/$parts" || code=$?
	finish_others web
	return "$code"
}

# newest_kernel SERIES: version of the newest one whose image and headers are installed.
newest_kernel() {
	for image in /boot/vmlinuz-"$1".*-cloud-amd64; do
		version=${image#/boot/vmlinuz-}
		if [ -e "$image" ] && [ -d "/usr/src/linux-headers-$version" ]; then
			say "$version"
		fi
	done | sort -V | tail -n 1
}

# kernel_absent WHAT PACKAGE...: a failure if "./dev kernel-test" was called; in "./dev test" the suite is skipped, and
# the summary says so.
kernel_absent() {
	what=$1
	shift
	say "no $what: apt-get install $*"
	if [ -n "${TTMEM_KERNEL_MUST:-}" ]; then
		record kernel 0 1 0
		return 1
	fi
	record kernel 0 0 1
	record "# THE KERNEL MODULE WAS NOT TESTED: no $what (apt-get install $*)"
}

# kernel_of VERSION: the static checks, then all tests in one boot.
kernel_of() {
	code=0
	sh tests/kernel/static.sh "$1" "$ROOT/build/kernel/static-$1" || code=1
	sh tests/kernel/boot.sh "$1" "$ROOT/build" "$ROOT/build/kernel/$1" || code=1
	return "$code"
}

# A machine whose clock counts instructions.
kernel_counted() {
	TTMEM_KERNEL_MACHINE='-accel tcg,thread=single -smp 1 -icount shift=0,sleep=off' \
		TTMEM_KERNEL_APPEND='ttmem_icount slub_debug=-' TTMEM_KERNEL_NAME=counted \
		sh tests/kernel/boot.sh "$1" "$ROOT/build" "$ROOT/build/kernel/counted" kernel-cost
}

# Boots a kernel of each series in parallel, because one alone leaves a processor idle most of the time. The older one
# also counts instructions; the newer one runs the tests with the daemon.
kernel() {
	for program in qemu-system-x86_64:qemu-system-x86 cpio:cpio busybox:busybox-static sparse:sparse make:make; do
		have "${program%:*}" || { kernel_absent "${program%:*}" "${program#*:}"; return; }
	done
	older=$(newest_kernel 6.1)
	newer=$(newest_kernel 6.12)
	[ -n "$older" ] || { kernel_absent "Linux 6.1" linux-image-cloud-amd64 linux-headers-cloud-amd64; return; }
	bad=0
	if [ -n "$newer" ]; then
		kernel_of "$newer" >build/logs/kernel-newer.log 2>&1 &
		second=$!
		kernel_counted "$older" || bad=1
		TTMEM_KERNEL_MORE=lib-family kernel_of "$older" || bad=1
		wait "$second" || bad=1
		cat build/logs/kernel-newer.log
	else
		kernel_counted "$older" || bad=1
		kernel_of "$older" || bad=1
		kernel_absent "Linux 6.12" linux-image-6.12-cloud-amd64 linux-headers-6.12-cloud-amd64 || bad=1
	fi
	return "$bad"
}

case $1 in
unit* | hostile*) meson_suite "$1" --num-processes "$(waiting_jobs)" ;;
proof*) meson_suite "$1" ;; # never waits
integration | trust | golden | check | cross | kernel | web) "$1" ;;
esac
