#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs in a clean Debian or Ubuntu, as root: installs the packages in /dist, uses what they bring, and purges them.
# Nothing may be left. Then the wheel, as an ordinary user without a network.

set -eux

ok() {
	echo "ok   $*"
}

# Names of all files, and users; not what apt, dpkg, depmod and dkms write down for themselves.
snapshot() {
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run/systemd -o -path /dist -o -path /tmp -o -path /root \
		-o -path /var/log/apt -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -name __pycache__ \
		-o -path '/var/lib/dkms/mok.*' -o -path '/usr/lib/modules/*/modules.*' \) -prune -o -print |
		sort >"$1"
	cat /etc/passwd /etc/group >>"$1"
}

packages=$(for deb in /dist/*.deb; do dpkg-deb -f "$deb" Package; done)

case $(. /etc/os-release && echo "$ID") in
ubuntu) flavour=generic ;;
*) flavour=cloud-amd64 ;;
esac

apt-get update -q
apt-get install -y -q --no-install-recommends bash-completion dkms fish gcc "linux-headers-$flavour" \
	libc6-dev make man-db pkgconf python3-pytest python3-venv systemd zsh
# What the packages depend on, before the first look.
# shellcheck disable=SC2046 # a list of words
apt-get install -y -q --no-install-recommends $(apt-get install -s --no-install-recommends /dist/*.deb |
	awk '/^Inst/ && $2 !~ /ttmem/ { print $2 }')
snapshot /root/before

apt-get install -y -q --no-install-recommends /dist/*.deb
ok install

getent passwd ttmem
for unit in ttmemd.service ttmem-legacy.service ttmemd.socket ttmemd-legacy.socket; do
	systemctl is-enabled "$unit"
	systemd-analyze verify "$unit"
done
# The old name is off until somebody wants it.
[ "$(systemctl is-enabled tt-allocation-server.service)" = disabled ]
systemctl enable tt-allocation-server.service
systemd-analyze verify tt-allocation-server.service
ok units and user

for name in ttmem ttmemd; do
	bash -c ". /usr/share/bash-completion/bash_completion
		. /usr/share/bash-completion/completions/$name && complete -p $name"
done
fish -c 'complete -C "ttmem sm"' | grep smi
zsh -fc 'autoload -Uz compinit; compinit -D -u; echo $_comps[ttmem]' | grep _ttmem
ok completion

for page in 1/ttmem 1/ttmem-run 3/ttmem 5/ttmemd.conf 8/ttmem-legacy 8/ttmemd; do
	man -P cat "${page%/*}" "${page#*/}" | grep -q NAME
done
ok man pages

ttmem --version
ttmem demo --seconds 3 </dev/null
ttmem selftest
mkdir /etc/ttmem
cp /usr/share/doc/ttmemd/examples/ttmemd.conf /etc/ttmem/
ttmemd --check
ttmem-legacy --check
tt_smi --help
grep -q /assets/index- /usr/bin/ttmemd
ok command and daemons

cat >/root/app.c <<'END'
#include <ttmem/ttmem.h>
int main(void)
{
	ttmem_alloc(0, TTMEM_DRAM, 0x1000, 65536, "weights");
	return 0;
}
END
# shellcheck disable=SC2046 # a list of words
gcc /root/app.c -o /root/app $(pkg-config --cflags --libs ttmem)
ttmem run -- /root/app 2>&1 | tee /root/leaks || true
grep weights /root/leaks
ok a program with the library

# What a run of pytest says about a test that leaks.
leaky() {
	mkdir -p /tmp/leaky
	cat >/tmp/leaky/test_it.py <<-'END'
		import ttmem

		def test_it():
		    assert "/libttmem-metal.so" in open("/proc/self/maps").read()
		    ttmem.alloc(0, ttmem.DRAM, 0x2000, 5, "kept")
	END
	# It fails, as it should.
	(cd /tmp/leaky && "$@" -B -m pytest -q -p no:cacheprovider --ttmem) >/tmp/leaky/out || true
	grep 'LEAKED test_it.py::test_it' /tmp/leaky/out
	rm -r /tmp/leaky
}

cd /
python3 -B -c 'import allocation_client, query_stats, ttmem; print(ttmem.version())'
leaky python3
ttmem run -q --metal -- python3 -B -c 'import sys; assert "ttmem._metal" in sys.modules'
ok python and pytest

kernel=$(basename "/usr/src/linux-headers-"*"-$flavour" | sed 's/^linux-headers-//')
version=$(dpkg-query -W -f '${Version}' ttmem-dkms)
dkms build -k "$kernel" "ttmem/$version" --force
modinfo -F version "$(find "/var/lib/dkms/ttmem/$version/$kernel" -name 'ttmem.ko*')" | grep -x "$version"
ok the kernel module

# shellcheck disable=SC2086 # a list of words
apt-get purge -y -q $packages
snapshot /root/after
diff /root/before /root/after
ok purge

# An ordinary user, without a network; the files of the packages are gone.
useradd -m someone
cat >/root/wheel.sh <<'END'
set -eux
python3 -m venv --system-site-packages ~/venv
~/venv/bin/pip install --no-index /dist/*.whl
~/venv/bin/ttmem --version
~/venv/bin/ttmem smi
~/venv/bin/ttmem buffers
~/venv/bin/ttmem run -- ~/venv/bin/python -c 'import ttmem; ttmem.alloc(0, ttmem.DRAM, 0x1000, 5, "kept")' 2>&1 | tee ~/leaks || true
grep kept ~/leaks
END
chmod 644 /root/wheel.sh
cp /root/wheel.sh /tmp/
unshare --net runuser -u someone -- env HOME=/home/someone sh /tmp/wheel.sh
leaky /home/someone/venv/bin/python
ok wheel
