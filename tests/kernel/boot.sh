#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# boot.sh VERSION BUILD WORK [TEST...]: builds the module for one of Debian's kernels, boots that kernel in QEMU
# with nothing but busybox, the module and the test programs of BUILD, and judges what comes out of its
# console. No KVM is needed: a boot takes seconds all the same.

set -u
cd "$(dirname "$0")/../.." || exit 1

version=$1 build=$2 work=$3
shift 3
headers=${TTMEM_KERNEL_HEADERS:-/usr/src/linux-headers-$version}
image=${TTMEM_KERNEL_IMAGE:-/boot/vmlinuz-$version}
seconds=${TTMEM_KERNEL_SECONDS:-1800} # ends a hang; a boot with all tests takes much less
name=kernel-${TTMEM_KERNEL_NAME:-${version%%-*}}

record() {
	echo "$*" >>"${TTMEM_RESULTS:-/dev/null}"
}

give_up() {
	echo "$*"
	record "$name" 0 1 0
	exit 1
}

# The library's own tests run on the kernel's book too. Not those that make no book (bounds, pick, rules, debug-log), and
# those about stacks and loading (stack, unwind, provider, loader): to them a book is a book.
# Who asks the daemon is told differently by older kernels: source-namespaces, daemon-access.
# shellcheck disable=SC2086 # a list of words
[ $# -gt 0 ] || set -- kernel-node kernel-errors kernel-list kernel-fair kernel-folder kernel-full kernel-odd \
	kernel-life kernel-race kernel-crowd kernel-hostile kernel-version kernel-view kernel-track kernel-sleep \
	lib-life lib-semantics lib-spaces lib-api-misc lib-misuse lib-descriptor lib-limits lib-offer-book lib-escape \
	lib-signal lib-crowd kernel-unload kernel-storm \
	source-namespaces daemon-access \
	${TTMEM_KERNEL_MORE:-lib-family kernel-daemon}

rm -rf "$work"
# The kernel's makefiles cannot work in a folder with a blank in its path.
module=$(mktemp -d) || give_up "no temporary folder"
trap 'rm -rf "$module"' EXIT
mkdir -p "$work/root/bin" "$work/root/lib64" "$work/root/proc" "$work/root/sys" \
	"$work/root/dev" "$work/root/tmp" "$work/root/etc"
cp -r kernel include "$module/"
make -s -C "$headers" M="$module/kernel" modules >"$work/make.log" 2>&1 || {
	cat "$work/make.log"
	give_up "the module does not build for $version"
}
cp -r tests/kernel/beside "$module/"
make -s -C "$headers" M="$module/beside" modules >"$work/make.log" 2>&1 || {
	cat "$work/make.log"
	give_up "a module beside it does not build for $version"
}

# need_library PATH: without what only a debugger wants.
need_library() {
	case $1 in
	/lib/* | /lib64/* | /usr/lib/*) to=$work/root$1 ;;
	*) to=$work/root/ours/$(basename "$1") ;;
	esac
	[ -e "$to" ] && return
	mkdir -p "$(dirname "$to")"
	strip -o "$to" "$1" 2>/dev/null || cp -L "$1" "$to"
}

# need PROGRAM: it and its libraries.
need() {
	strip -o "$work/root/bin/$(basename "$1")" "$1" 2>/dev/null || cp "$1" "$work/root/bin/"
	ldd "$1" 2>/dev/null | sed -n 's|^[^/]*\(/.*\) (0x[0-9a-f]*)$|\1|p' | while read -r library; do
		need_library "$library"
	done
}

cp "$(command -v busybox)" "$work/root/bin/busybox"
strip --strip-debug -o "$work/root/ttmem.ko" "$module/kernel/ttmem.ko"
strip --strip-debug -o "$work/root/beside.ko" "$module/beside/beside.ko"
install -m 755 tests/kernel/init.sh "$work/root/init"
printf '%s\n' 'root:x:0:0::/tmp:/bin/sh' 'other:x:5555:5555::/tmp:/bin/sh' >"$work/root/etc/passwd"
echo 'root:x:0:' >"$work/root/etc/group"
for test; do
	case $test in
	kernel-*) program=$build/tests/kernel/$test-test ;;
	*) program=$build/src/$test-test ;;
	esac
	[ -x "$program" ] || give_up "$program is not built" >&2
	need "$program"
	basename "$program"
done >"$work/root/tests"
need "$build/src/cli/ttmem"
need "$build/src/daemon/ttmemd"
need "$build/src/legacy/program/ttmem-legacy"
need_library "$(gcc -print-file-name=libgcc_s.so.1)" # pthread_cancel() loads it
need "$build/tests/kernel/kernel-holder"
[ -x "$build/tests/kernel/kernel-compat32" ] || give_up "the program of 32 bits is not built (gcc -m32)"
need "$build/tests/kernel/kernel-compat32"
(cd "$work/root" && find . | cpio -o -H newc --quiet) >"$work/initrd" || give_up "no initrd"

# A processor that is emulated on a busy machine may get nothing to do for a minute: that is no lockup.
# Nor is it a broken timer, for which a kernel would panic before it has come up.
patience="no_timer_check nosoftlockup rcupdate.rcu_cpu_stall_suppress=1 clocksource=tsc tsc=reliable"
# What was said first must still be there at the end.
patience="$patience log_buf_len=4M"
# Debian's kernels clear all memory that is asked for: then nobody could tell whether we ask for it to be.
patience="$patience init_on_alloc=0"

# How often a line was printed.
told() {
	grep -a -c "^@@$1" "$work/console"
}

# One boot, until it is over. A test that sends the machine to sleep has told so: it is woken up then. (Who is awake
# already only gets a complaint in the monitor.)
# Return: what qemu returned.
boot() {
	: >"$work/console"
	rm -f "$work/monitor.in" "$work/monitor.out"
	mkfifo "$work/monitor.in" "$work/monitor.out"
	# shellcheck disable=SC2086 # a list of words
	timeout -k 5 "$seconds" qemu-system-x86_64 ${TTMEM_KERNEL_MACHINE:--accel tcg,thread=multi -smp 2} \
		-cpu max -m "${TTMEM_KERNEL_MEMORY:-768}" \
		-nodefaults -no-user-config -kernel "$image" -initrd "$work/initrd" -nographic \
		-serial stdio -monitor "pipe:$work/monitor" -no-reboot \
		-append "console=ttyS0 panic=-1 quiet slub_debug=FZPU oops=panic \
		$patience ${TTMEM_KERNEL_APPEND:-}" </dev/null >"$work/console" 2>&1 &
	machine=$!
	exec 9<>"$work/monitor.in" # for both, so that it waits for nobody
	while kill -0 "$machine" 2>/dev/null; do
		[ "$(told asleep)" = "$(told awake)" ] || echo system_wakeup >&9
		sleep 1
	done
	exec 9>&-
	wait "$machine"
}

start=$(date +%s)
boot
code=$?
echo "$version: $(($(date +%s) - start)) s"

# The console has carriage returns, and lines of the kernel between those of the programs.
tr -d '\r' <"$work/console" >"$work/log"
sed -n 's/^@@result //p' "$work/log" | sed "s/^\([^# ]\)/$name-\1/" >"$work/results"
[ -z "${TTMEM_RESULTS:-}" ] || cat "$work/results" >>"$TTMEM_RESULTS"
bad=0
if ! grep -q '^@@end$' "$work/log"; then
	echo "the machine did not come to its end (qemu: $code)"
	bad=1
fi
if ! grep -q '^@@unloaded$' "$work/log"; then
	echo "the module was not unloaded"
	bad=1
fi
# Anything that a kernel says when something is wrong with it.
if sed -n '/^@@log$/,/^@@end$/p' "$work/log" | grep -E -n 'WARNING|BUG|Oops|KASAN|UBSAN|Call Trace|Tainted.* [DW]|possible (recursive|circular)|Poison|Redzone|Object padding|unreferenced object|INFO: |general protection|refcount_t|leaked|remaining on|Objects remaining|Busy inodes|blocked for more than'; then
	echo "the kernel complained"
	bad=1
fi
failed=$(awk '!/^#/ { n += $3 } END { print n + 0 }' "$work/results")
awk '!/^#/ { p += $2; f += $3; s += $4 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' \
	"$work/results"
record "$name-log" $((1 - bad)) "$bad" 0
# Of the tests that failed, what they printed; it comes before the name of each.
sed '/^@@log$/,$d' "$work/log" | grep -a -E -B 20 '^(FAIL|----) '
[ "$bad" -eq 0 ] || tail -n 150 "$work/log"
[ "$bad" -eq 0 ] && [ "$failed" -eq 0 ]
