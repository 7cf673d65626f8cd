#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs README's commands, in README's order, as an ordinary user in a Debian 12 that has none of the packages they need.
# The home has mode 750, and the clone is that of the last commit.
#
# usage: run.sh [SUITE...], as root: of the tests only these. Exits with 77 where it cannot be tried.

set -eu
cd "$(dirname "$0")/../.."
ROOT=$PWD
. tools/dev/common.sh
. tools/dev/system.sh

system_named 12
root=$ROOT/build/fresh/root
log=$ROOT/build/logs/fresh-test.log
mkdir -p build/fresh build/logs
: >"$log"

# commands [SUITE...]: those that README tells a visitor to type, one per line.
commands() {
	sed -n '/^## Try it without a card$/,/^## Install it$/s/^    \(\.\/dev[^#]*[^# ]\) *\(#.*\)\{0,1\}$/\1/p' README.md |
		sed "s,^\./dev test\$,&${*:+ $*},"
}

# What a person needs before there is a clone.
visitor() {
	system_fresh "$root"
	system_inside "$root" sh -euc '
		apt-get update -q
		apt-get install -y -q --no-install-recommends ca-certificates git sudo
		useradd --create-home --shell /bin/bash visitor
		chmod 750 /home/visitor
		echo "visitor ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/visitor
	'
	# The way out of this network is not part of what is tried.
	for variable in http_proxy https_proxy no_proxy; do
		eval "value=\${$variable:-}"
		[ -z "$value" ] || say "export $variable='$value'"
	done >"$root/etc/profile.d/network.sh"
	if [ -e "${NODE_EXTRA_CA_CERTS:-}" ]; then
		cp "$NODE_EXTRA_CA_CERTS" "$root/etc/ssl/network.crt"
		say "export NODE_EXTRA_CA_CERTS=/etc/ssl/network.crt" >>"$root/etc/profile.d/network.sh"
	fi
	git clone -q --no-hardlinks . "$root/home/visitor/ttmem"
	chown -R --reference="$root/home/visitor" "$root/home/visitor/ttmem"
}

# as_visitor COMMAND: typed in the clone.
as_visitor() {
	say "\$ $1"
	system_inside "$root" runuser -l visitor -c "cd ttmem && $1" </dev/null
}

[ "$(commands | head -n 2 | paste -s -d ,)" = "./dev demo,./dev test" ] ||
	die "README does not begin with ./dev demo and ./dev test: $(commands | paste -s -d ,)"
# cannot WHY
cannot() {
	say "NOTHING WAS TRIED ON A FRESH MACHINE: $*"
	exit 77
}

# What each suite has done, and what it could not do there.
suites() {
	grep -E '^[a-z]+ +[0-9]+ passed +[0-9]+ failed|^    (FAIL|skip|THE) |^[0-9]+ passed' "$log" | sed 's/^/     /'
}

# progress: once a minute, how far the suite is that runs. Ends with us, however we end.
progress() {
	while sleep 60 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
		logs=$root/home/visitor/ttmem/build/logs
		suite=$(find "$logs" -name '*.results' -printf '%T@ %f\n' 2>/dev/null | sort -n | sed -n '$s/.* \(.*\)\.results/\1/p')
		case $suite in
		integration | trust) suite="$suite, $(find "$logs/share" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l) files begun" ;;
		esac
		printf '     %5.0f s: %s\n' "$(since "$began")" "${suite:-packages and the build}"
	done 9>&- # the lock
}

[ "$(id -u)" = 0 ] || cannot "a system of its own needs root"
unshare --mount --pid --fork true 2>/dev/null || cannot "no namespaces can be made"
release_file=$(system_sources | awk '{ print $2 "dists/" $3 "/InRelease"; exit }')
/usr/lib/apt/apt-helper download-file "$release_file" build/fresh/InRelease >/dev/null 2>&1 ||
	cannot "$release_file cannot be fetched"

system_lock
step "a plain system" system_base
step "a visitor with a clone" visitor
began=$(now)
progress &
trap 'kill "$!" 2>/dev/null' EXIT
# shellcheck disable=SC2119 # suites, or nothing
commands "$@" | while read -r command; do
	if (step "$command" as_visitor "$command"); then
		suites
	else
		suites
		exit 1
	fi
done
rm -rf "$root"
