# SPDX-License-Identifier: Apache-2.0
#
# Completion of ttmem for bash. The words are those of "ttmem --help"; types are fixed by tt-metal.

_ttmem() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local commands='smi ps buffers growth history watch incidents leaks run doctor status dump analyze selftest bench demo help'
	local types='DRAM L1 SYSTEM_MEMORY L1_SMALL TRACE CB KERNEL'
	local command=${COMP_WORDS[1]} words='' i

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$current")
		return
	fi

	# What follows "run --" is another command with its own completion.
	if [ "$command" = run ]; then
		for ((i = 2; i < COMP_CWORD; i++)); do
			if [ "${COMP_WORDS[i]}" = -- ] && declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
				return
			fi
		done
	fi

	case $previous in
	help) words=$commands ;;
	--type | --ignore) words=$types ;;
	--sort) words='size age' ;;
	--by) words='name phase site thread' ;;
	--format) words='text seed json' ;;
	--ids) words='hex decimal' ;;
	--pid)
		mapfile -t COMPREPLY < <(cd /proc && compgen -G "${current}*" | grep -x '[0-9]*')
		return
		;;
	--baseline | --bundle | --markdown | --metal-shim)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	esac

	if [ -z "$words" ]; then
		case $command in
		smi) words='-w --watch -r --refresh -d --device -a --all --details --json --csv' ;;
		ps) words='--json' ;;
		buffers) words='--pid --device --type --sort --by --stacks --json --csv' ;;
		growth) words='--pid --seconds --json' ;;
		history) words='--device --pid --type --json' ;;
		watch) words='--format --ids --stacks --type' ;;
		incidents | leaks) words='--pid --json' ;;
		doctor) words='--pid --json --bundle --kinds' ;;
		status) words='--json' ;;
		analyze)
			words='--json --leaked-addresses --device --type --top --fail-on-leak'
			mapfile -t COMPREPLY < <(compgen -f -W "$words --help" -- "$current")
			return
			;;
		bench) words='--json' ;;
		run) words='--fail-on-leak --baseline --ignore --json --markdown --metal-shim --' ;;
		demo) words='--seconds --keep' ;;
		esac
		words="$words --help"
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -F _ttmem ttmem
