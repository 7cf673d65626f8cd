# SPDX-License-Identifier: Apache-2.0
#
# Completion of ttmemd for fish. The words are those of "ttmemd --help".

complete -c ttmemd -f
complete -c ttmemd -l socket -r -F -d "native socket"
complete -c ttmemd -l legacy-socket -r -F -d "socket of the old protocol, or none"
complete -c ttmemd -l http -x -a "none 127.0.0.1:5392" -d "where HTTP is served"
complete -c ttmemd -l http-details -d "details over HTTP without a token"
complete -c ttmemd -l skip-frames -x -d "frames of allocators"
complete -c ttmemd -l http-host -x -d "names of this machine"
complete -c ttmemd -l fleet -x -a "(__fish_print_hostnames)" -d "other machines with ttmemd"
complete -c ttmemd -l fleet-prometheus -x -d "Prometheus that knows other machines"
complete -c ttmemd -l otlp -x -d "OpenTelemetry collector"
complete -c ttmemd -l otlp-interval -x -d "time between two pushes"
complete -c ttmemd -l token-file -r -F -d "token for details over HTTP"
complete -c ttmemd -l state -x -a "(__fish_complete_directories)" -d "folder of the database"
complete -c ttmemd -l keep -x -d "how long the past is kept"
complete -c ttmemd -l size-max -x -d "how large the database may become"
complete -c ttmemd -l flight -x -a "off 10m,256M" -d "events kept in memory, for a recording when something happens"
complete -c ttmemd -l legacy-memory -x -d "memory for the books of old clients"
complete -c ttmemd -l on-incident -x -d "command for each incident"
complete -c ttmemd -l strict-close -d "report what was live when its device was closed"
complete -c ttmemd -l log-events -d "print each event in the old server's words"
complete -c ttmemd -l ids -x -a "hex decimal" -d "how buffers are numbered"
complete -c ttmemd -s q -l quiet -d "print errors only"
complete -c ttmemd -l trace-wire -d "print each message of the old protocol"
complete -c ttmemd -l log -r -F -d "where to print"
complete -c ttmemd -l keeper -x -a "yes no" -d "a small process holds the books in between"
complete -c ttmemd -l metrics-processes -x -d "processes in /metrics"
complete -c ttmemd -l scan-interval -x -d "time between two looks at /proc"
complete -c ttmemd -l group -x -a "(__fish_complete_groups)" -d "who sees everybody's processes"
complete -c ttmemd -l ready-fd -x -d "write a line there once ready"
complete -c ttmemd -l config -r -F -d "settings, or none"
complete -c ttmemd -l check -d "print all settings"
complete -c ttmemd -s h -l help -d "all options"
complete -c ttmemd -s V -l version -d "the version"
complete -c allocation_server_poc -w ttmemd
complete -c allocation_server_enhanced -w ttmemd
