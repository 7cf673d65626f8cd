/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
#ifndef _UAPI_TTMEM_H
#define _UAPI_TTMEM_H

/*
 * What ttmem.ko offers. Everything begins at /dev/ttmem:
 *
 *	node = open("/dev/ttmem", O_RDWR | O_CLOEXEC);
 *	ioctl(node, TTMEM_IOC_BOOK, &book);		a book of one's own; book.fd is its file
 *	mmap(..., MAP_SHARED, book.fd, 0);		once, by the process that made it (then EBUSY)
 *	ioctl(book.fd, TTMEM_IOC_RESERVE, &reserve);	before the first store to a page
 *
 * A book's file behaves like a memory file: it has a size, an inode number and an owner, can be opened again
 * for reading through /proc/PID/fd, and read. Who cannot see that descriptor gets one by TTMEM_IOC_ATTACH.
 * The book ends with the address space that made it; files that are open then can still be read.
 *
 * TTMEM_IOC_TRACK_ALLOC and TTMEM_IOC_TRACK_FREE are for clients without a mapping: the kernel keeps what
 * they report for as long as the node is open.
 *
 * Every struct begins with its size and with flags. Rules: argsz is sizeof the struct; unknown flags, reserved
 * members and those that are only an answer ("out") are 0 on entry, otherwise EINVAL, so that each can get a
 * meaning one day: a struct that was answered is cleared before it is used again. An ioctl that does not exist is
 * ENOTTY, a struct that cannot be read or written EFAULT. No call fails because of a signal, other than one that ends
 * the process. On failure nothing is written back, and nothing has happened unless it says so. All structs are the same
 * for 32 bits.
 */

#include <linux/ioctl.h>
#include <linux/types.h>

#define TTMEM_NODE "/dev/ttmem"
#define TTMEM_FS_MAGIC 0x74746d62 /* f_type of a book's file, from statfs() */

#define TTMEM_UAPI_TYPES 7
#define TTMEM_UAPI_DEVICES 1024
#define TTMEM_UAPI_SIZE_MAX (1ULL << 46) /* of a buffer; no device has as much */
#define TTMEM_UAPI_ANY 0xffffffffU       /* a free whose type is not known */

/*
 * Makes a book. EINVAL for a size that no book can have, EMFILE beyond TTMEM_BOOKS_PER_PROCESS or without a descriptor
 * left, ENFILE without a file left, ENOMEM without memory.
 */
struct ttmem_ioc_book {
	__u32 argsz;
	__u32 flags;
	__u64 size; /* multiple of 64 KiB, 11 MiB to 4 GiB */
	__u64 room; /* in: bytes that may be reserved, 0 = as many as allowed; out: that are granted */
	__u64 id; /* out: never used twice while the module is loaded; also the file's inode number */
	__s32 fd; /* out: open for reading and writing, close-on-exec */
	__u32 reserved;
};

#define TTMEM_BOOKS_PER_PROCESS 8

/*
 * A file for reading of somebody's book. By id, by pid (as the caller sees pids; its first book), or by both,
 * which must then agree; 0 = any. ENOENT if there is none, EACCES without the right: the effective user who
 * made the book, the owner itself, or CAP_PERFMON. EMFILE, ENFILE and ENOMEM as above.
 */
struct ttmem_ioc_attach {
	__u32 argsz;
	__u32 flags;
	__u64 id;
	__s32 pid;
	__s32 fd; /* out: close-on-exec */
};

/*
 * Of a book's file, by the owner's address space only (EPERM): puts zeroed memory behind a part of the book.
 * EINVAL if it is not whole pages within the book, ENOMEM if the room, what the user or all may have, or the memory
 * has run out; what was had before that stays.
 */
struct ttmem_ioc_reserve {
	__u32 argsz;
	__u32 flags;
	__u64 offset;
	__u64 length;
};

#define TTMEM_INFO_ENDED 1u /* the owner's address space is gone */

/* Of a book's file. */
struct ttmem_ioc_info {
	__u32 argsz;
	__u32 flags; /* in: 0; out: TTMEM_INFO_... */
	__u64 id;    /* this and all that follows: out */
	__u64 size;
	__u64 room;
	__u64 used; /* bytes that are reserved */
	__s32 pid;  /* as the caller sees it; 0 = not at all, or it has ended */
	__u32 uid;  /* effective user who made the book */
};

#define TTMEM_CLIENTS_PER_USER 4096 /* open nodes by which buffers were reported */

/*
 * One buffer more. The same buffer again with the same size is one reference more; with another size it is
 * EEXIST. EINVAL for a device, type or size that cannot be, ENOSPC beyond the cap of the module, EMFILE beyond
 * TTMEM_CLIENTS_PER_USER, EOVERFLOW for too many references, ENOMEM if what the user or all may have, or the memory has
 * run out.
 */
struct ttmem_ioc_track_alloc {
	__u32 argsz;
	__u32 flags;
	__u32 device;
	__u32 type;
	__u64 address;
	__u64 size;
	__u32 refs; /* out */
	__u32 reserved;
};

/* One reference less; ENOENT if there is no such buffer. Of several, TTMEM_UAPI_ANY means the youngest. */
struct ttmem_ioc_track_free {
	__u32 argsz;
	__u32 flags;
	__u32 device;
	__u32 type;
	__u64 address;
	__u64 size; /* out: of the buffer */
	__u32 refs; /* out: that are left */
	__u32 reserved;
};

struct ttmem_ioc_memory {
	__u64 bytes;
	__u64 buffers;
};

/* A figure is a bound because its process lost events, or its process wrote too fast for figures of one moment. */
#define TTMEM_STATS_INEXACT 1u

/* What is live on a device, by type: of everybody, and of the calling process. */
struct ttmem_ioc_query_stats {
	__u32 argsz;
	__u32 flags; /* in: 0; out: TTMEM_STATS_... */
	__u32 device;
	__u32 reserved;
	struct ttmem_ioc_memory all[TTMEM_UAPI_TYPES]; /* out */
	struct ttmem_ioc_memory own[TTMEM_UAPI_TYPES]; /* out */
};

/* Not the driver's 0xfa: its numbers are its own to give. */
#define TTMEM_IOC_MAGIC 0xe6

#define TTMEM_IOC_BOOK _IOWR(TTMEM_IOC_MAGIC, 0, struct ttmem_ioc_book)
#define TTMEM_IOC_ATTACH _IOWR(TTMEM_IOC_MAGIC, 1, struct ttmem_ioc_attach)
#define TTMEM_IOC_RESERVE _IOW(TTMEM_IOC_MAGIC, 2, struct ttmem_ioc_reserve)
#define TTMEM_IOC_INFO _IOWR(TTMEM_IOC_MAGIC, 3, struct ttmem_ioc_info)
#define TTMEM_IOC_TRACK_ALLOC _IOWR(TTMEM_IOC_MAGIC, 4, struct ttmem_ioc_track_alloc)
#define TTMEM_IOC_TRACK_FREE _IOWR(TTMEM_IOC_MAGIC, 5, struct ttmem_ioc_track_free)
#define TTMEM_IOC_QUERY_STATS _IOWR(TTMEM_IOC_MAGIC, 6, struct ttmem_ioc_query_stats)

#endif
