#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Tests the container files of data/fleet in a real engine, Debian's Podman. Nothing comes from a registry:
# the base image is made of Debian packages. The images are built as users would build them, and run in
# isolation: processes, network, /run/ttmem, /var/lib/ttmem and /tmp belong to this test.
#
# TTMEM_BUILD: the build folder; TTMEM_IMAGES=keep: do not rebuild existing images.

set -eu
cd "$(dirname "$0")/../.."
ROOT=$PWD
FOLDER=$ROOT/build/container
TTMEM_BUILD=${TTMEM_BUILD:-$ROOT/build}
export TTMEM_BUILD

# has_overlay: whether overlay mounts work. Otherwise each layer is a full copy of those below, which takes minutes.
has_overlay() {
	try=$FOLDER/try
	mkdir -p "$try/lower" "$try/upper" "$try/work" "$try/all"
	unshare --mount mount -t overlay -o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work" \
		ttmem "$try/all" 2>/dev/null
}

# Settings that also work in restricted environments: without overlay, without delegated control groups.
settings() {
	mkdir -p "$FOLDER"
	if has_overlay; then driver=overlay; else driver=vfs; fi
	cat >"$FOLDER/storage.conf" <<-END
	[storage]
	driver = "$driver"
	graphroot = "$FOLDER/$driver"
	runroot = "$FOLDER/run"
	END
	cat >"$FOLDER/containers.conf" <<-END
	[containers]
	default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
	[engine]
	cgroup_manager = "cgroupfs"
	events_logger = "file"
	compat_api_enforce_docker_hub = false
	END
	export CONTAINERS_STORAGE_CONF="$FOLDER/storage.conf" CONTAINERS_CONF="$FOLDER/containers.conf"
}

# base: a plain Debian image, made once.
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
	buildah bud --isolation chroot --network host --pull-never --layers \
		--build-arg BASE=localhost/debian:12 "$@" -f "$file" -t "$name" "$context"
}

# ttmemd_images: the image, and the stage that builds it. npm in there needs this machine's settings to reach the
# same registry.
ttmemd_images() {
	set --
	if command -v npm >/dev/null; then
		set -- "$@" --build-arg "NPM_CONFIG_REGISTRY=$(npm config get registry 2>/dev/null)"
	fi
	# Where local certificate authorities are installed on Debian.
	trusted=$(cat /usr/local/share/ca-certificates/*.crt 2>/dev/null || true)
	if [ -n "$trusted" ]; then
		set -- "$@" --build-arg "NPM_CONFIG_CA=$trusted"
	fi
	image ttmemd-build data/fleet/Dockerfile . --target build "$@"
	image ttmemd data/fleet/Dockerfile . "$@"
}

settings
base
ttmemd_images
image ttmem-prometheus data/fleet/Dockerfile.prometheus data/fleet

# Remove what an earlier run left in our own store.
podman pod rm -a -f -t 1 >/dev/null
podman rm -a -f -t 1 >/dev/null
podman image prune -f >/dev/null

exec unshare --pid --mount --net --fork --mount-proc --kill-child \
	/usr/bin/python3 -B -m pytest -q -rs -p no:cacheprovider tests/container
