#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The layer rule: includes only point to lower layers, and name their file as "folder/file.h". The table
# below lists the folders from the lowest to the highest, each with the folders that it uses. A folder can
# only use folders listed before it (its tests may use any). An edge that no file uses is an error too, so
# the table matches the code exactly. docs/architecture.md explains the layers; a new edge is a change of
# the design: explain it there in the same commit. The imports of the page (web/src) follow the same rule.

set -u
cd "$(dirname "$0")/../.." || exit 1

# shellcheck disable=SC2016 # awk has its own dollars
{
	find src kernel python -name '*.[ch]'
	find web/src -name '*.ts'
} | sort | xargs awk '
# folder(PATH, USES, TESTS): what the files of a folder include, and what only its tests do.
# layer(PATHS): folders of one layer, which may also include each other.
# testing/ counts as part of its folder, for tests only.
# "ttmem" and "uapi" are the public headers. USES and TESTS may also name single files.
BEGIN {
	folder("base", "")
	folder("wire", "base")
	folder("book/format", "base")
	folder("book/write", "base book/format", "book/testing")
	folder("book/read", "base book/format kernel/block.h", "book/write book/testing")
	folder("book/testing", "", "base book/format book/write book/read kernel/block.h")
	folder("model", "base book/format ttmem/types.def")
	folder("answers", "base book/format model", "book/testing")
	folder("legacy/wire", "base")
	folder("symbol", "base model")
	folder("source/proc", "base book/format model")
	layer("source source/books source/daemon-client source/host")
	folder("source/fleet", "base")
	folder("source/host", "base book/format model source/proc uapi", "kernel/block.h kernel/book-layout.h")
	folder("source/books", "base wire book/format book/read model source/proc uapi", "book/testing book/write answers")
	folder("source/daemon-client", "base wire model source/proc", "book/testing")
	folder("source", "base model", "source/proc")
	folder("recording/format", "base book/format model answers", "book/read book/testing book/write")
	folder("recording/write", "base book/format book/read model source/books recording/format", "book/testing book/write recording/testing")
	folder("recording/testing", "", "base book/format book/read book/testing book/write source/books recording/format recording/read recording/write")
	folder("recording/read", "base book/format book/read model answers source source/books recording/format", "book/testing book/write recording/testing recording/write")
	folder("recording/flight", "base source/books recording/format recording/write", "book/read book/testing recording/testing recording/read")
	folder("recording/json", "base model answers source/books recording/read", "book/testing recording/testing")
	folder("store", "base model")
	layer("web/server web/api web/export")
	folder("web/server", "base model answers")
	folder("web/api", "base model answers")
	folder("web/export", "base model")
	folder("daemon/config", "base source/fleet")
	folder("daemon/fleet", "base answers source/fleet", "model")
	folder("daemon/notify", "base model answers")
	folder("daemon/registry", "base book/read model source/proc source/host source/books source", "book/testing")
	folder("daemon/link", "base wire source/proc source/books daemon/registry", "book/testing")
	folder("daemon/symbols", "base model symbol source/books daemon/registry", "book/read book/testing daemon/notify daemon/recorder")
	folder("daemon/flight", "base book/format book/read model answers source source/books recording/flight recording/read daemon/registry daemon/symbols")
	folder("daemon/playback", "base model answers source/proc source recording/read recording/json web/server daemon/registry daemon/flight")
	folder("daemon/custody", "base source/proc")
	folder("daemon/doors", "base source/proc web/server")
	folder("daemon/recorder", "base book/format book/read model answers source/proc store daemon/notify daemon/registry daemon/symbols daemon/flight", "book/testing daemon")
	folder("daemon/native", "base wire book/read model source/proc source/books web/server daemon/registry", "book/testing")
	folder("legacy/server", "base book/format book/write book/read model answers legacy/wire source/proc source/books daemon/notify daemon/registry daemon/symbols", "book/testing")
	folder("daemon", "base wire book/format book/read model answers symbol source/proc source/books store web/server web/export daemon/config daemon/notify daemon/registry daemon/symbols daemon/custody daemon/doors daemon/fleet daemon/flight daemon/playback daemon/recorder daemon/native daemon/link")
	folder("legacy/program", "base wire model symbol source/proc source/books daemon/config daemon/custody daemon/notify daemon/registry daemon/symbols legacy/server")
	folder("lib/process", "base book/write ttmem", "lib/testing")
	folder("lib/testing", "", "base book/format book/read ttmem")
	layer("lib/api lib/bookfile lib/stack")
	folder("lib/bookfile", "base wire book/format book/write lib/process uapi", "book/testing lib/testing ttmem")
	folder("lib/stack", "base book/format book/write lib/process ttmem", "book/testing lib/testing")
	folder("lib/api", "base book/write lib/process ttmem", "book/testing lib/testing")
	folder("legacy/debug-log", "base book/format book/write lib/process lib/api ttmem", "book/testing")
	folder("metal", "base ttmem/ttmem.h")
	folder("sim", "ttmem/ttmem.h", "model")
	folder("tui", "base model answers")
	folder("cli/common", "base model answers recording/read recording/write symbol source/proc source/host source/books source/daemon-client source")
	folder("legacy/analyze", "base book/format model answers symbol cli/common")
	folder("legacy/commands", "base answers legacy/wire model source/daemon-client cli/common")
	folder("cli/bench", "base book/format book/read answers recording/write source/books sim cli/common ttmem/ttmem.h")
	folder("cli/diff", "base model answers source/books recording/read cli/common")
	folder("cli/replay", "base book/format book/read model answers source/books recording/read cli/common", "book/testing recording/testing")
	folder("cli/doctor", "base book/format book/read metal model answers symbol source/proc source/host source/books source/daemon-client cli/common ttmem/ttmem.h ttmem/types.def")
	folder("cli/export", "base book/format book/read model symbol recording/read source/books cli/common ttmem/ttmem.h", "book/testing recording/testing")
	folder("cli/record", "base recording/write source/books cli/common")
	folder("cli/report", "base model answers source source/books recording/read cli/common ttmem/types.def")
	folder("cli/budget", "base book/read model answers source/books recording/read cli/common")
	folder("cli/run", "base wire book/format book/read model answers recording/flight recording/write source/proc source/books cli/common cli/budget ttmem/ttmem.h", "book/testing book/write")
	folder("cli/selftest", "base model cli/common cli/run ttmem/ttmem.h")
	folder("cli/leaks", "base model answers recording/json source/daemon-client cli/common")
	folder("cli/smi", "base model answers source/fleet cli/common ttmem/ttmem.h")
	folder("cli/watch", "base book/format book/read model answers source/books cli/common ttmem/ttmem.h")
	folder("cli", "base book/format book/read model answers symbol source/proc source/books source/daemon-client recording/read sim tui cli/common cli/run cli/smi ttmem/ttmem.h", "book/testing book/write recording/testing")
	folder("query", "base model source source/books ttmem")
	folder("kernel", "uapi ttmem/types.def")
	folder("python", "ttmem/provider.h ttmem/ttmem.h ttmem/types.def")
	folder("web/src/base", "")
	folder("web/src/data", "web/src/base")
	folder("web/src/time", "web/src/base web/src/data")
	folder("web/src/analysis", "web/src/base web/src/data web/src/time")
	folder("web/src/parts", "web/src/base web/src/data")
	folder("web/src/chart", "web/src/base web/src/data web/src/time web/src/parts")
	folder("web/src/flame", "web/src/base web/src/data web/src/parts")
	folder("web/src/map", "web/src/base web/src/data web/src/analysis web/src/parts")
	folder("web/src/report", "web/src/base web/src/data web/src/analysis web/src/parts web/src/chart web/src/flame web/src/map")
	folder("web/src/views", "web/src/base web/src/data web/src/time web/src/analysis web/src/parts web/src/chart web/src/flame web/src/map")
	folder("web/src", "web/src/base web/src/data web/src/time web/src/parts web/src/views")
}

function layer(paths,    words, n, i, k) {
	n = split(paths, words, " ")
	for (i = 1; i <= n; i++)
		for (k = 1; k <= n; k++)
			same[words[i], words[k]] = 1
}

function folder(path, uses, tests,    words, n, i) {
	known[path] = ++order
	n = split(uses, words, " ")
	for (i = 1; i <= n; i++)
		edge(path, words[i], 1)
	n = split(tests, words, " ")
	for (i = 1; i <= n; i++)
		edge(path, words[i], 2)
}

# @kind: 1 for every file, 2 for tests only.
function edge(from, to, kind) {
	allowed[from, to] = kind
	if (to ~ /^legacy\// && from !~ /^legacy\//) {
		printf "layers: %s uses %s, but nothing outside legacy may\n", from, to
		bad = 1
	}
	if (kind == 1 && to !~ /^(ttmem|uapi|kernel\/)/ && !(to in known)) {
		printf "layers: %s uses %s, which does not stand above it\n", from, to
		bad = 1
	}
}

function wrong(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text
	bad = 1
}

# Folders that only sort the files of one layer.
function layer_of(path) {
	# Test support, unless it has a line of its own.
	if (!(path in known))
		sub(/\/testing$/, "", path)
	sub(/^python.*/, "python", path)
	sub(/^base\/(files|process|threads)$/, "base", path)
	sub(/^model\/(cards|memory|sites)$/, "model", path)
	sub(/^cli\/export\/(format|visualizer)$/, "cli/export", path)
	return path
}

function dirname(path) {
	sub(/\/[^\/]*$/, "", path)
	return path
}

FNR == 1 {
	from = dirname(FILENAME)
	sub(/^src\//, "", from)
	from = layer_of(from)
	is_test = FILENAME ~ /-(test|fuzz)\.c$/ || FILENAME ~ /testing/
	if (!(from in known))
		wrong("unknown folder \"" from "\": add it to the table in tools/check/layers.sh")
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
	quoted = $0 ~ /include[ \t]*"/
	file = $0
	sub(/^[^"<]*["<]/, "", file)
	sub(/[">].*$/, "", file)
	to = file ~ /\// ? dirname(file) : ""
	to = layer_of(to)
	ours = to in known || to == "ttmem" || to == "uapi"
	if (quoted && !ours)
		wrong("\"" file "\": write \"folder/file.h\", or <file.h> if it is not ours")
	if (!is_test && file ~ /\/testing\//)
		wrong("\"" file "\" is for tests only")
	if (!ours || (is_test && file == "base/testing/unit.h"))
		next
	use(to, file)
}

# Modules of the page, by paths from the file that imports them; style sheets are not modules.
/(from|import) *\(?"\.\.?\/[^"]*"/ && FILENAME ~ /\.ts$/ && !/\.css"/ {
	match($0, /"\.\.?\/[^"]*"/)
	file = dirname(FILENAME) "/" substr($0, RSTART + 1, RLENGTH - 2)
	gsub(/\/\.\//, "/", file)
	while (sub(/\/[^\/.]+\/\.\.\//, "/", file))
		;
	use(dirname(file), file)
}

# A file uses @file, which is in @to.
function use(to, file,    kind) {
	if (to == from || (from, to) in same)
		return
	kind = (from, to) in allowed ? allowed[from, to] : (from, file) in allowed ? allowed[from, file] : 0
	if (!kind || (kind == 2 && !is_test))
		wrong("a file of " from " must not use \"" file "\"")
	if (kind == 2 || !is_test)
		used[from, (from, to) in allowed ? to : file] = 1
}

END {
	for (pair in allowed) {
		if (!(pair in used)) {
			split(pair, ends, SUBSEP)
			printf "layers: no file of %s uses %s any more: take it out of the table\n", ends[1], ends[2]
			bad = 1
		}
	}
	exit bad
}
'
