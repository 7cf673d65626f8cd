#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds libttmem-metal.so for the tt-metal that is installed:
#
#     sh build.sh FOLDER [CMAKE-OPTION]...
#
# FOLDER receives it. Where ttmem or tt-metal are not found by themselves, say where they are with
# -DCMAKE_PREFIX_PATH="PREFIX-OF-TTMEM;PREFIX-OF-TT-METAL".

set -eu

if [ $# -lt 1 ]; then
	echo "usage: sh build.sh FOLDER [CMAKE-OPTION]..." >&2
	exit 2
fi
folder=$1
shift
here=$(dirname "$0")

cmake -S "$here" -B "$folder" "$@"
cmake --build "$folder"

# Preloaded into every process of an application, it must not bring tt-metal along.
if readelf -dW "$folder/libttmem-metal.so" | grep -i 'needed.*tt_metal'; then
	echo "libttmem-metal.so is linked with tt-metal; it must not be" >&2
	exit 1
fi
echo "ttmem run --metal-shim $folder/libttmem-metal.so -- YOUR-COMMAND"
