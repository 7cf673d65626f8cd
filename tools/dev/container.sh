# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ./dev container-test: tests the container files of data/fleet in Podman. Needs root, and a network for
# Debian's packages; takes several minutes the first time. --keep-images reuses the existing images.

. tools/dev/suite.sh

CONTAINER_CAP=1800

dev_container_test() {
	case $ROOT in
	/tmp/*) die "these tests have a /tmp of their own and would not find $ROOT: clone it elsewhere" ;;
	esac
	case ${1:-} in
	--keep-images) export TTMEM_IMAGES=keep ;;
	'') ;;
	*) die "usage: ./dev container-test [--keep-images]" ;;
	esac
	need build integration container
	build_default tests/programs/player web/assets-data.c || die "the build failed"
	suite container "$CONTAINER_CAP" sh tests/container/run.sh
	total
}
