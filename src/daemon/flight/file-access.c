/* SPDX-License-Identifier: Apache-2.0 */

/*
 * By an access control list: the daemon is an ordinary user, who cannot give files away, and a file
 * that belonged to its reader could be made larger by that one. The list is what the kernel takes:
 * a version, then entries of tag, permission and id.
 */

#include "daemon/flight/file-access.h"

#include <endian.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bits.h"

#define ACCESS_VERSION 2u
#define ACCESS_NO_ID UINT32_MAX

#define ACCESS_READ 4u
#define ACCESS_WRITE 2u

/* In the order in which the kernel wants them. */
enum access_tag {
	ACCESS_OWNER = 0x01,
	ACCESS_USER = 0x02,
	ACCESS_GROUP = 0x04,
	ACCESS_MASK = 0x10,
	ACCESS_OTHER = 0x20,
};

struct access_entry {
	uint16_t tag;
	uint16_t permission;
	uint32_t id;
};

struct access_list {
	uint32_t version;
	struct access_entry entries[5];
};

_Static_assert(sizeof(struct access_list) == 44, "no padding");

static struct access_entry access_entry(enum access_tag tag, uint32_t permission, uint32_t id)
{
	return (struct access_entry){htole16((uint16_t)tag), htole16((uint16_t)permission),
				     htole32(id)};
}

int file_access_allow(int fd, uint32_t user)
{
	const struct access_list list = {
		.version = htole32(ACCESS_VERSION),
		.entries =
			{
				access_entry(ACCESS_OWNER, ACCESS_READ | ACCESS_WRITE,
					     ACCESS_NO_ID),
				access_entry(ACCESS_USER, ACCESS_READ, user),
				access_entry(ACCESS_GROUP, 0, ACCESS_NO_ID),
				access_entry(ACCESS_MASK, ACCESS_READ, ACCESS_NO_ID),
				access_entry(ACCESS_OTHER, 0, ACCESS_NO_ID),
			},
	};

	if (user == geteuid() || user == 0)
		return fchmod(fd, 0600) < 0 ? -errno : 0;
	if (fsetxattr(fd, "system.posix_acl_access", &list, sizeof(list), 0) == 0)
		return 0;
	if (errno != EOPNOTSUPP)
		return -errno;
	/* A file system without lists: root can give it away. */
	return fchown(fd, user, (gid_t)-1) < 0 || fchmod(fd, 0400) < 0 ? -EOPNOTSUPP : 0;
}
