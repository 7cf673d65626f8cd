#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Everything else builds without src/legacy: -Dlegacy=disabled, in build-nolegacy/, compiled in the fastest way.

set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck disable=SC2034 # used by the sourced files
ROOT=$PWD
. tools/dev/common.sh
. tools/dev/build.sh

configure build-nolegacy -Dlegacy=disabled -Dtests=false -Ddashboard=disabled -Dman=disabled -Doptimization=0 -Ddebug=false &&
	compile build-nolegacy || exit 1

if build-nolegacy/src/cli/ttmem help | grep -E '^From the old tools|^  (analyze|dump) '; then
	exit 1
fi

# Nor is anything of the old server installed: its successor, units, man page and commands under old names.
old='ttmem-legacy|ttmemd-legacy|tt-allocation-server|allocation_(server|monitor)|dump_remaining|debug_tracking|tt_smi'
if meson introspect --installed build-nolegacy | tr ',' '\n' | sed 's/.*: //' | grep -E "/($old)"; then
	exit 1
fi
