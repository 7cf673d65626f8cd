# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev golden --old: release 0.2.0 and this one together, in the transcripts of tests/golden. It is not part of
# "./dev test" because 0.2.0 has to be built first, which takes longer than all transcripts.

GOLDEN_RELEASE=b8fa8acd
GOLDEN_PROGRAMS="src/cli/ttmem src/daemon/ttmemd src/lib/libttmem.so.0.2.0 src/metal/libttmem-metal.so tests/programs/player"

# Builds 0.2.0 into build/0.2.0/build, once.
golden_build() {
	git cat-file -e "$GOLDEN_RELEASE^{commit}" 2>/dev/null || die "the history has no commit $GOLDEN_RELEASE (0.2.0)"
	if [ ! -f build/0.2.0/build/build.ninja ]; then
		rm -rf build/0.2.0
		mkdir -p build/0.2.0
		git archive "$GOLDEN_RELEASE" | tar -x -C build/0.2.0 || die "0.2.0 cannot be unpacked"
		(cd build/0.2.0 && meson setup build -Ddashboard=disabled -Dman=disabled) >build/logs/configure-0.2.0.log ||
			die "0.2.0 cannot be configured; see build/logs/configure-0.2.0.log"
	fi
	package=$(ninja -C build/0.2.0/build -t targets all | sed -n 's,^\(python/ttmem/.*\.\(py\|so\)\): .*,\1,p')
	# shellcheck disable=SC2086 # lists of words
	ninja --quiet -C build/0.2.0/build $GOLDEN_PROGRAMS $package || die "0.2.0 cannot be built"
}

# golden_mix ROLES NAME...: transcripts in which 0.2.0 plays these roles.
golden_mix() {
	say "== $1 of 0.2.0"
	options=
	for role in $1; do
		options="$options --$role build/0.2.0/build"
	done
	shift
	# shellcheck disable=SC2086 # a list of words
	"$PYTHON" -B tests/golden/run.py $options "$@" || golden_failed=1
}

dev_golden() {
	[ "${1-}" = --old ] || die "usage: ./dev golden --old"
	[ "$(id -u)" = 0 ] || die "needs root"
	need build integration
	# shellcheck disable=SC2086 # a list of words
	build_default src/legacy/program/ttmem-legacy $GOLDEN_PROGRAMS || die "the build failed"
	golden_build
	golden_failed=
	golden_mix library live daemon run grafana screen watch otlp pytest systemd
	golden_mix daemon daemon history old grafana fleet otlp handover restart systemd
	golden_mix successor handover systemd # it sets the history of a later release aside
	golden_mix command live daemon history recording files screen watch fleet
	golden_mix "daemon command" daemon history
	[ -z "$golden_failed" ] || die "0.2.0 and this release do not work together"
}
