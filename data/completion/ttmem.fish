# SPDX-License-Identifier: Apache-2.0
#
# Completion of ttmem for fish. The words are those of "ttmem --help"; types are fixed by tt-metal.

set -l commands smi ps buffers growth history watch incidents leaks run doctor status dump analyze selftest bench demo
set -l types DRAM L1 SYSTEM_MEMORY L1_SMALL TRACE CB KERNEL

complete -c ttmem -f
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a smi -d "devices and processes"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a ps -d "per process, device and type"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a buffers -d "every live buffer"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a growth -d "call sites that keep growing"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a history -d "life of one address"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a watch -d "events as they happen"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a incidents -d "double frees and the like"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a leaks -d "what ended processes left"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a doctor -d "why do I see nothing?"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a status -d "how the daemon is"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a dump -d "the old report of remaining buffers"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a analyze -d "what logs of the old system tell"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a run -d "run a command with tracking on"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a selftest -d "check that the tools see known buffers"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a bench -d "measure the cost of an event"
complete -c ttmem -n "not __fish_seen_subcommand_from $commands" -a demo -d "simulated devices at work"

complete -c ttmem -n "__fish_seen_subcommand_from smi" -s w -l watch -d "refresh"
complete -c ttmem -n "__fish_seen_subcommand_from smi" -s r -l refresh -x -d "milliseconds between refreshes"
complete -c ttmem -n "__fish_seen_subcommand_from smi" -s d -l device -x -d "only this device"
complete -c ttmem -n "__fish_seen_subcommand_from smi" -s a -l all -d "closed devices and ended processes too"
complete -c ttmem -n "__fish_seen_subcommand_from smi" -l details -d "every type"
complete -c ttmem -n "__fish_seen_subcommand_from smi ps buffers growth history incidents leaks doctor status bench analyze" -l json
complete -c ttmem -n "__fish_seen_subcommand_from smi buffers" -l csv
complete -c ttmem -n "__fish_seen_subcommand_from buffers growth history incidents leaks doctor" -l pid -x -a "(__fish_complete_pids)"
complete -c ttmem -n "__fish_seen_subcommand_from buffers history analyze" -l device -x
complete -c ttmem -n "__fish_seen_subcommand_from buffers history watch analyze" -l type -x -a "$types"
complete -c ttmem -n "__fish_seen_subcommand_from buffers" -l sort -x -a "size age"
complete -c ttmem -n "__fish_seen_subcommand_from buffers" -l by -x -a "name phase site thread"
complete -c ttmem -n "__fish_seen_subcommand_from buffers watch" -l stacks
complete -c ttmem -n "__fish_seen_subcommand_from watch" -l format -x -a "text seed json"
complete -c ttmem -n "__fish_seen_subcommand_from watch" -l ids -x -a "hex decimal"
complete -c ttmem -n "__fish_seen_subcommand_from analyze" -F
complete -c ttmem -n "__fish_seen_subcommand_from analyze" -l leaked-addresses -d "one in a line"
complete -c ttmem -n "__fish_seen_subcommand_from analyze" -l top -x -d "rows of each list"
complete -c ttmem -n "__fish_seen_subcommand_from run analyze" -l fail-on-leak -d "exit with 86 on a leak"
complete -c ttmem -n "__fish_seen_subcommand_from run" -l baseline -r -F -d "leaks that are known"
complete -c ttmem -n "__fish_seen_subcommand_from run" -l ignore -x -a "$types"
complete -c ttmem -n "__fish_seen_subcommand_from run" -l json -r -F
complete -c ttmem -n "__fish_seen_subcommand_from run" -l markdown -r -F
complete -c ttmem -n "__fish_seen_subcommand_from run" -l metal-shim -r -F -d "library that tracks tt-metal"
complete -c ttmem -n "__fish_seen_subcommand_from doctor" -l bundle -r -F -d "file for a bug report"
complete -c ttmem -n "__fish_seen_subcommand_from doctor" -l kinds -d "list what can be found"
complete -c ttmem -n "__fish_seen_subcommand_from demo growth" -l seconds -x
complete -c ttmem -n "__fish_seen_subcommand_from demo" -l keep -d "stay until q"
