# SPDX-License-Identifier: Apache-2.0
#
# Completion of ttmem for fish. Commands and options are asked of the program itself, so they are always
# its own; only what may stand behind an option is written down here.

function __ttmem_commands
    ttmem --help 2>/dev/null | string replace -rf '^  ([a-z]+) +(.*)$' '$1\t$2'
end

function __ttmem_is_first
    test (count (commandline -opc)) -eq 1
end

function __ttmem_options
    set -l words (commandline -opc)
    ttmem $words[2] --help 2>/dev/null |
        string replace -rf '^  (?:-., |    )--([a-z-]+)(?:\[\S+| \S+)? +(.*)$' -- '--$1\t$2'
end

function __ttmem_types
    ttmem buffers --help 2>/dev/null | string replace -rf '^ +--type TYPE +(.*)$' '$1' |
        string match -ra '[A-Z0-9_]+'
end

function __ttmem_devices
    ttmem smi --csv 2>/dev/null | string replace -rf '^[0-9]+,([0-9]+),.*$' '$1' | sort -nu
end

function __ttmem_behind
    contains -- (commandline -opc)[-1] $argv
end

# Whether the cursor is behind "run --", where another command stands.
function __ttmem_runs
    set -l words (commandline -opc)
    test "$words[2]" = run; and contains -- -- $words[3..-1]
end

function __ttmem_program
    set -l words (commandline -opc)
    set -l first (math (contains -i -- -- $words) + 1)
    complete -C (string join ' ' -- (string escape -- $words[$first..-1]) (commandline -ct))
end

complete -c ttmem -f
complete -c ttmem -n __ttmem_runs -a "(__ttmem_program)"
complete -c ttmem -n __ttmem_is_first -a "(__ttmem_commands)"
complete -c ttmem -n "not __ttmem_is_first; and not __ttmem_runs" -a "(__ttmem_options)"
complete -c ttmem -n "__ttmem_behind --type --ignore" -a "(__ttmem_types)"
complete -c ttmem -n "__ttmem_behind --sort" -a "size age"
complete -c ttmem -n "__ttmem_behind --fit" -a "first best"
complete -c ttmem -n "__ttmem_behind --card" -a "n150 n300 p100 p150 galaxy"
complete -c ttmem -n "__ttmem_behind --by; and not __fish_seen_subcommand_from smi" -a "name phase site thread"
complete -c ttmem -n "__ttmem_behind --by; and __fish_seen_subcommand_from smi" -a user
complete -c ttmem -n "__ttmem_behind --user" -a "(__fish_complete_users)"
complete -c ttmem -n "__ttmem_behind --format; and not __fish_seen_subcommand_from export" -a "text seed json"
complete -c ttmem -n "__ttmem_behind --format; and __fish_seen_subcommand_from export" -a "pprof speedscope folded heaptrack firefox perfetto memory_viz chrome csv ttnn-visualizer"
complete -c ttmem -n "__ttmem_behind --ids" -a "hex decimal"
complete -c ttmem -n "__ttmem_behind --pid" -a "(__fish_complete_pids)"
complete -c ttmem -n "__ttmem_behind --device -d" -a "(__ttmem_devices)"
complete -c ttmem -n "__ttmem_behind --annotate" -a "github"
complete -c ttmem -n "__ttmem_behind --baseline --budget --bundle --from --junit --markdown --output -o --record" -F
complete -c ttmem -n "__fish_seen_subcommand_from analyze check diff export replay report" -F
