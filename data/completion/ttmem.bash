# SPDX-License-Identifier: Apache-2.0
#
# Completion of ttmem for bash. Commands and options are asked of the program itself, so they are always
# its own; only what may stand behind an option is written down here.

_ttmem_commands() {
	ttmem --help 2>/dev/null | sed -nE 's/^  ([a-z]+) +.*$/\1/p'
}

# _ttmem_options COMMAND
_ttmem_options() {
	ttmem "$1" --help 2>/dev/null | sed -nE 's/^  (-(.), |    )--([a-z-]+).*$/--\3 \1/p' |
		sed 's/,//'
}

_ttmem_types() {
	ttmem buffers --help 2>/dev/null | sed -nE 's/,| or / /g; s/^ +--type TYPE +//p'
}

_ttmem_devices() {
	ttmem smi --csv 2>/dev/null | sed -nE 's/^[0-9]+,([0-9]+),.*$/\1/p' | sort -nu
}

# _ttmem_program FIRST: completes the program to run, which begins with that word, and its arguments.
_ttmem_program() {
	local current=${COMP_WORDS[COMP_CWORD]}

	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif [ "$COMP_CWORD" -eq "$1" ] && [[ $current != */* ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$current" | sort -u)
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
	fi
}

_ttmem() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} words i

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_ttmem_commands) help --help --version" -- "$current")
		return
	fi

	# What follows "run --" is another command with its own completion.
	if [ "$command" = run ]; then
		for ((i = 2; i < COMP_CWORD; i++)); do
			if [ "${COMP_WORDS[i]}" = -- ]; then
				_ttmem_program $((i + 1))
				return
			fi
		done
	fi

	case $previous in
	help) words=$(_ttmem_commands) ;;
	--type | --ignore) words=$(_ttmem_types) ;;
	--sort) words='size age' ;;
	--by)
		words='name phase site thread'
		if [ "$command" = smi ]; then
			words=user
		fi
		;;
	--user)
		mapfile -t COMPREPLY < <(compgen -u -- "$current")
		return
		;;
	--format)
		words='text seed json'
		if [ "$command" = export ]; then
			words='pprof speedscope folded heaptrack firefox perfetto memory_viz chrome csv ttnn-visualizer'
		fi
		;;
	--ids) words='hex decimal' ;;
	--fit) words='first best' ;;
	--card) words='n150 n300 p100 p150 galaxy' ;;
	--device | -d) words=$(_ttmem_devices) ;;
	--pid)
		mapfile -t COMPREPLY < <(cd /proc && compgen -G "${current}*" | grep -x '[0-9]*')
		return
		;;
	--annotate) words=github ;;
	--baseline | --budget | --bundle | --from | --junit | --markdown | --output | -o | --record)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	*)
		words=$(_ttmem_options "$command")
		case $command in
		analyze | check | diff | export | replay | report)
			mapfile -t COMPREPLY < <(compgen -f -W "$words" -- "$current")
			return
			;;
		esac
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -F _ttmem ttmem
