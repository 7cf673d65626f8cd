# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# Clean Debian and Ubuntu systems to try things in, as root. What was downloaded is kept for the next one, outside the
# clone. Sourced, after common.sh.

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/ttmem

# system_named RELEASE: sets $release, $system and $name.
system_named() {
	release=$1
	case $release in
	12) system=Debian name=bookworm ;;
	13) system=Debian name=trixie ;;
	22.04) system=Ubuntu name=jammy ;;
	24.04) system=Ubuntu name=noble ;;
	*) die "not one of the systems 12, 13, 22.04 and 24.04: $release" ;;
	esac
}

# system_sources: the lines of a sources.list. Debian comes from this machine's own mirror, with the updates if this is
# the same release.
system_sources() {
	if [ "$system" = Debian ]; then
		# shellcheck disable=SC2016 # apt's own dollars
		apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(REPO_URI)' | sort -u | awk -v name="$name" '
			$1 != "Debian" { next }
			$2 !~ /-/ { main = $3 }
			$2 == name || index($2, name "-") == 1 { print "deb", $3, $2, "main"; any = 1 }
			END {
				if (!main) {
					print "apt knows no mirror of Debian" >"/dev/stderr"
					exit 1
				}
				if (!any)
					print "deb", main, name, "main"
			}'
		return
	fi
	keys=/usr/share/keyrings/ubuntu-archive-keyring.gpg
	[ -e "$keys" ] || { echo "no $keys: Debian 13's package ubuntu-archive-keyring has it" >&2; return 1; }
	for suite in "$name" "$name-updates"; do
		echo "deb [signed-by=$keys] http://archive.ubuntu.com/ubuntu $suite main universe"
	done
}

# system_lock: one at a time on this machine, as apt wants it for its archives. Held until we exit.
system_lock() {
	mkdir -p "$CACHE/systems"
	exec 9>"$CACHE/systems/lock"
	flock 9
}

# system_base: a plain system, made again after a week.
system_base() {
	base=$CACHE/systems/$release.tar
	[ -z "$(find "$base" -mtime -7 2>/dev/null)" ] || return 0
	from=$(system_sources) || return 1
	say "$from" |
		mmdebstrap --variant=minbase --include=apt --dpkgopt=force-unsafe-io "$name" "$base.$$.tar" - &&
		mv "$base.$$.tar" "$base"
}

# system_fresh ROOT: that system in a folder.
system_fresh() {
	rm -rf "$1"
	mkdir -p "$1"
	tar -C "$1" -xf "$CACHE/systems/$release.tar"
	cp /etc/resolv.conf "$1/etc/resolv.conf"
	say "127.0.0.1 localhost $(uname -n)" >"$1/etc/hosts"
	echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/quick"
}

# system_inside ROOT COMMAND...: in there, with processes and mounts of its own. Not with chroot, in which nobody may make
# user namespaces.
system_inside() {
	archives=$CACHE/systems/$release-archives
	mkdir -p "$archives/partial"
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --pid --fork --kill-child sh -euc '
		mount_dev=$1 archives=$2
		mount --make-rprivate /
		mount --bind "$3" "$3"
		cd "$3"
		shift 3
		mount -t proc proc proc
		mount --rbind /sys sys
		mount --bind "$archives" var/cache/apt/archives
		sh "$mount_dev" .
		pivot_root . .
		umount -l .
		cd /
		exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
			LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy=$http_proxy} "$@"
	' sh "$ROOT/tests/container/mount-dev.sh" "$archives" "$@"
}

# step WHAT COMMAND...: prints how it went; the output is in $log. Exits if it failed.
step() {
	what=$1
	shift
	start=$(now)
	# Not as a condition: there, -e would not count.
	set +e
	# shellcheck disable=SC2154 # the caller sets it
	(
		set -e
		"$@"
	) >>"$log" 2>&1
	code=$?
	set -e
	if [ "$code" -eq 0 ]; then
		printf 'ok   %s %s: %-40s %7s s\n' "$system" "$release" "$what" "$(since "$start")"
	else
		printf 'FAIL %s %s: %-40s %7s s\n' "$system" "$release" "$what" "$(since "$start")"
		tail -n 40 "$log"
		exit 1
	fi
}
