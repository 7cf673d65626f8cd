# SPDX-License-Identifier: Apache-2.0
#
# Completion of ttmemd for bash. The words are those of "ttmemd --help".

_ttmemd() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words=

	COMPREPLY=()
	case $previous in
	--socket | --legacy-socket | --token-file | --config | --log)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	--state)
		mapfile -t COMPREPLY < <(compgen -d -- "$current")
		return
		;;
	--group)
		mapfile -t COMPREPLY < <(compgen -g -- "$current")
		return
		;;
	--on-incident)
		mapfile -t COMPREPLY < <(compgen -c -- "$current")
		return
		;;
	--ids) words='hex decimal' ;;
	--keeper) words='yes no' ;;
	--http) words='none 127.0.0.1:5392' ;;
	--flight) words='off 10m,256M' ;;
	--keep | --size-max | --legacy-memory | --metrics-processes | --scan-interval | --ready-fd) return ;;
	*)
		words='--socket --legacy-socket --legacy-memory --http --http-host --fleet --fleet-prometheus --otlp --otlp-interval --skip-frames --http-details --token-file --state --keep
			--size-max --flight --on-incident --strict-close --log-events --log-history --ids --quiet --trace-wire --log --keeper
			--metrics-processes --scan-interval --group --ready-fd --config --check --help
			--version'
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -F _ttmemd ttmemd allocation_server_poc allocation_server_enhanced
