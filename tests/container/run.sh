#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The files of data/fleet for containers, in a real engine: Podman, from Debian. Nothing comes from a registry:
# the base image is made of Debian packages. The images are built as anybody would build them, and run on
# a machine of their own: processes, network, /run/ttmem, /var/lib/ttmem and /tmp are this test's.
#
# TTMEM_BUILD: the build folder; TTMEM_IMAGES=keep: do not build images that are there.

set -eu
cd "$(dirname "$0")/../.."
ROOT=$PWD
FOLDER=$ROOT/build/container
TTMEM_BUILD=${TTMEM_BUILD:-$ROOT/build}
export TTMEM_BUILD

# Quiet settings that work where containers are not at home: no overlay, no own control groups.
settings() {
	mkdir -p "$FOLDER"
	cat >"$FOLDER/storage.conf" <<-END
	[storage]
	driver = "vfs"
	graphroot = "$FOLDER/store"
	runroot = "$FOLDER/run"
	END
	cat >"$FOLDER/containers.conf" <<-END
	[containers]
	default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
	[engine]
	cgroup_manager = "cgroupfs"
	events_logger = "file"
	END
	export CONTAINERS_STORAGE_CONF="$FOLDER/storage.conf" CONTAINERS_CONF="$FOLDER/containers.conf"
}

# base: an image of Debian and nothing else, once.
base() {
	buildah inspect --type image localhost/debian:12 >/dev/null 2>&1 && return
	mmdebstrap --variant=minbase bookworm "$FOLDER/base.tar"
	new=$(buildah from scratch)
	buildah add -q "$new" "$FOLDER/base.tar" /
	buildah commit -q "$new" localhost/debian:12
	buildah rm "$new"
	rm "$FOLDER/base.tar"
}

# image NAME FILE FOLDER ARGS...
image() {
	name=$1 file=$2 context=$3
	shift 3
	if [ "${TTMEM_IMAGES:-}" = keep ] && buildah inspect --type image "$name" >/dev/null 2>&1; then
		return
	fi
	buildah bud --isolation chroot --network host --pull-never \
		--build-arg BASE=localhost/debian:12 "$@" -f "$file" -t "$name" "$context"
}

settings
base
image ttmemd data/fleet/Dockerfile . --build-arg DASHBOARD=
image ttmem-prometheus data/fleet/Dockerfile.prometheus data/fleet

# What an earlier run has left, in our own store.
podman rm -a -f -t 1 >/dev/null

exec unshare --pid --mount --net --fork --mount-proc --kill-child \
	/usr/bin/python3 -B -m pytest -q -rs -p no:cacheprovider tests/container
