# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# Build folders. Each has one purpose and its own options, so that switching between commands does not
# cause rebuilds.

# The error is at the end, after a long list of compiler flags.
show_configure() {
	grep -v '^Compiler for' "$1" | tail -n 20
}

# found: what this machine has of what meson uses only where it is there. meson looks for it once, when it configures.
found() {
	for program in scdoc npm ccache; do
		printf '%s=%s ' "$program" "$(command -v "$program")"
	done
	page=web/built/SHA256SUMS
	[ -e "$page" ] || page=
	headers=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)/Python.h
	[ -e "$headers" ] || headers=
	say "page=$page headers=$headers"
}

# configure FOLDER OPTION...: does nothing if the folder was configured with the same options on a machine that had the
# same. Else it starts from the beginning: meson would keep a library that it has found before and that is gone.
configure() {
	folder=$1
	shift
	case ${TTMEM_WERROR:-0} in
	0 | '') set -- "$@" -Dwerror=false ;;
	*) set -- "$@" -Dwerror=true ;;
	esac
	options="CC=${CC:-} $* $(found)"
	if [ -f "$folder/build.ninja" ] && [ "$(cat "$folder/.options" 2>/dev/null)" = "$options" ]
	then
		return 0
	fi
	mkdir -p build/logs
	log=build/logs/configure-$folder.log
	rm -rf "$folder/meson-private" "$folder/build.ninja"
	if meson setup "$folder" "$@" >"$log" 2>&1; then
		say "$options" >"$folder/.options"
	else
		show_configure "$log"
		return 1
	fi
}

# compile FOLDER [TARGET...]: prints only warnings and errors.
compile() {
	folder=$1
	shift
	start=$(now)
	# Reconfigures if a meson.build has changed; its output only matters if it fails.
	ninja -C "$folder" build.ninja >"build/logs/configure-$folder.log" 2>&1 || {
		show_configure "build/logs/configure-$folder.log"
		return 1
	}
	ninja --quiet -C "$folder" "$@" || return 1
	say "built $folder in $(since "$start") s"
}

build_default() {
	configure build && compile build "$@"
}

# The build that users get: optimised, without asserts. TTMEM_DASHBOARD=enabled fails if the dashboard cannot
# be built, disabled does not try.
build_release() {
	configure build-release --buildtype=release -Db_ndebug=true -Ddashboard="${TTMEM_DASHBOARD:-auto}" &&
		compile build-release "$@"
}
