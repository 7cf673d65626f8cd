#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The layer rule: includes only point down, and name their file as "layer/file.h". See
# docs/architecture.md for why. A layer that needs another one is a change of the design: change
# the table below in the same commit, and say why there.

set -u
cd "$(dirname "$0")/../.." || exit 1

# shellcheck disable=SC2016 # awk has its own dollars
find src kernel python -name '*.[ch]' 2>/dev/null | sort | xargs awk '
# What each layer may use beside itself. "ttmem" and "uapi" are the public headers.
BEGIN {
	allow("base", "")
	allow("book", "base kernel/block.h") # read by the module too, and shipped with its source
	allow("wire", "base")
	allow("core", "base book wire")
	allow("symbol", "base book core/namer.h")
	allow("source", "base book wire core uapi")
	allow("store", "base book core")
	allow("lib", "base book wire ttmem uapi")
	allow("sim", "ttmem/ttmem.h")
	allow("web", "base core")
	allow("daemon", "base book wire core symbol source store web uapi")
	allow("tui", "base book core")
	allow("cli", "base book wire core source symbol sim tui ttmem/ttmem.h")
	allow("python", "ttmem/ttmem.h ttmem/provider.h")
	allow("kernel", "uapi")
}

function allow(layer, list,    words, n) {
	known[layer] = 1
	ok[layer, layer] = 1
	n = split(list, words, " ")
	for (i = 1; i <= n; i++)
		ok[layer, words[i]] = 1
}

function wrong(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text
	bad = 1
}

FNR == 1 {
	split(FILENAME, path, "/")
	layer = path[1] == "src" ? path[2] : path[1]
	is_test = FILENAME ~ /-(test|fuzz)\.c$/
	if (!(layer in known))
		wrong("unknown layer \"" layer "\": add it to the table in tools/check/layers.sh")
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
	quoted = $0 ~ /include[ \t]*"/
	file = $0
	sub(/^[^"<]*["<]/, "", file)
	sub(/[">].*$/, "", file)
	split(file, part, "/")
	target = part[1]
	ours = target in known || target == "ttmem" || target == "uapi"

	if (quoted && (!ours || file !~ /\//))
		wrong("\"" file "\": write \"layer/file.h\", or <file.h> if it is not ours")
	if (!ours || file !~ /\//)
		next
	if ((layer, target) in ok || (layer, file) in ok)
		next
	if (is_test && (file == "base/unit.h" || target == "kernel"))
		next
	wrong("a file of " layer " must not include \"" file "\": includes only point down")
}

END { exit bad }
'
