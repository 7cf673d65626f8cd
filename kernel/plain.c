/* SPDX-License-Identifier: GPL-2.0 */

/*
 * A tree of buffers for each open node, and counters for each device. Everything is charged to the
 * caller's memory cgroup and to the share of the user who pays, up to a cap: nobody can make the
 * kernel keep more than that.
 */

#include "kernel/plain.h"

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "kernel/file.h"
#include "kernel/folder.h"
#include "kernel/holder.h"
#include "kernel/leak.h"
#include "kernel/share.h"

static unsigned int plain_buffers = 65536;
module_param_named(plain_buffers, plain_buffers, uint, 0644);
MODULE_PARM_DESC(plain_buffers, "buffers that one client without a book may report (65536)");

struct plain_buffer {
	struct rb_node node;
	u64 address;
	u64 size;
	u64 birth; /* the client's allocation count at that time */
	u32 device;
	u32 type;
	u32 refs;
};

struct plain_device {
	struct holder_memory memory[TTMEM_UAPI_TYPES];
};

/* Upper bound of what a device costs: its counters, and a node for it alone in the xarray. */
#define PLAIN_DEVICE_COST 1024

/*
 * The views wait for figures_lock only, under which nothing is allocated and nothing is copied to
 * or from users: a client that waits for memory, or for the page its reply goes to, delays nobody
 * else.
 */
struct plain {
	struct holder holder;
	struct mutex lock; /* for everything but the figures */
	bool is_listed; /* from its first buffer on: most users of the node want something else */
	struct rb_root buffers;
	unsigned int count;
	u64 births;
	struct share *share; /* from its first buffer on */
	unsigned long pages; /* that are charged to the share */
	size_t used;         /* bytes of them */
	spinlock_t figures_lock;
	struct xarray devices; /* of struct plain_device; never removed */
};

static struct kmem_cache *plain_cache;

static u32 plain_next_device(struct holder *holder, u32 from)
{
	struct plain *plain = container_of(holder, struct plain, holder);
	unsigned long index = from;

	return xa_find(&plain->devices, &index, TTMEM_UAPI_DEVICES - 1, XA_PRESENT)
		       ? index
		       : TTMEM_UAPI_DEVICES;
}

static bool plain_uses(struct holder *holder, u32 device)
{
	struct plain *plain = container_of(holder, struct plain, holder);

	return xa_load(&plain->devices, device) != NULL;
}

static void plain_read(struct holder *holder, u32 device, u32 type,
		       struct holder_memory *ret_memory)
{
	struct plain *plain = container_of(holder, struct plain, holder);
	struct plain_device *entry = xa_load(&plain->devices, device);

	if (!entry) {
		memset(ret_memory, 0, sizeof(*ret_memory));
		return;
	}
	spin_lock(&plain->figures_lock);
	*ret_memory = entry->memory[type];
	spin_unlock(&plain->figures_lock);
}

static bool plain_is_kin(struct holder *holder, struct holder *other)
{
	return uid_eq(holder->payer, other->payer);
}

static const struct holder_ops plain_holder_ops = {
	.kind = "plain",
	.is_kin = plain_is_kin,
	.kin_max = TTMEM_CLIENTS_PER_USER,
	.next_device = plain_next_device,
	.uses = plain_uses,
	.read = plain_read,
};

struct plain *plain_new(void)
{
	struct plain *plain = kzalloc(sizeof(*plain), HOLDER_GFP);

	if (!plain)
		return NULL;
	mutex_init(&plain->lock);
	spin_lock_init(&plain->figures_lock);
	plain->buffers = RB_ROOT;
	xa_init_flags(&plain->devices, XA_FLAGS_ACCOUNT);
	holder_init(&plain->holder, &plain_holder_ops);
	return plain;
}

/*
 * Charges @bytes more. The share is charged by the page, so that most calls touch no shared state.
 * False: the user's or the total limit is reached, or there is no memory.
 */
static bool plain_charge(struct plain *plain, size_t bytes)
{
	if (!plain->share) {
		plain->share = share_get(plain->holder.payer, SHARE_CLIENT);
		if (!plain->share)
			return false;
		plain->used = sizeof(*plain);
	}
	while (plain->used + bytes > plain->pages << PAGE_SHIFT) {
		if (!share_charge(plain->share))
			return false;
		plain->pages++;
	}
	plain->used += bytes;
	return true;
}

/* Keeps one free page, so that alternating allocations and frees do not charge each time. */
static void plain_refund(struct plain *plain, size_t bytes)
{
	unsigned long needed;

	plain->used -= bytes;
	needed = DIV_ROUND_UP(plain->used, PAGE_SIZE) + 1;
	if (plain->pages > needed) {
		share_refund(plain->share, plain->pages - needed);
		plain->pages = needed;
	}
}

void plain_free(struct plain *plain)
{
	struct plain_buffer *buffer, *next;
	struct plain_device *entry;
	unsigned long index;

	holder_remove(&plain->holder);
	folder_leave(&plain->holder);
	leak_count(&plain->holder);
	rbtree_postorder_for_each_entry_safe(buffer, next, &plain->buffers, node)
		kmem_cache_free(plain_cache, buffer);
	xa_for_each(&plain->devices, index, entry) kfree(entry);
	xa_destroy(&plain->devices);
	if (plain->share) {
		share_refund(plain->share, plain->pages);
		share_put(plain->share, SHARE_CLIENT);
	}
	mutex_destroy(&plain->lock);
	holder_deinit(&plain->holder);
	kfree(plain);
}

struct holder *plain_holder(struct plain *plain)
{
	return &plain->holder;
}

static int plain_compare(const struct plain_buffer *buffer, u32 device, u32 type, u64 address)
{
	if (buffer->device != device)
		return buffer->device < device ? -1 : 1;
	if (buffer->type != type)
		return buffer->type < type ? -1 : 1;
	if (buffer->address != address)
		return buffer->address < address ? -1 : 1;
	return 0;
}

/* The buffer, or NULL and the place to insert it. */
static struct plain_buffer *plain_find(struct plain *plain, u32 device, u32 type, u64 address,
				       struct rb_node **ret_parent, struct rb_node ***ret_link)
{
	struct rb_node **link = &plain->buffers.rb_node;
	struct rb_node *parent = NULL;

	while (*link) {
		struct plain_buffer *buffer = rb_entry(*link, struct plain_buffer, node);
		int order = plain_compare(buffer, device, type, address);

		if (order == 0)
			return buffer;
		parent = *link;
		link = order < 0 ? &parent->rb_right : &parent->rb_left;
	}
	if (ret_link) {
		*ret_parent = parent;
		*ret_link = link;
	}
	return NULL;
}

static struct plain_device *plain_device(struct plain *plain, u32 device)
{
	struct plain_device *entry = xa_load(&plain->devices, device);

	if (entry)
		return entry;
	if (!plain_charge(plain, PLAIN_DEVICE_COST))
		return NULL;
	entry = kzalloc(sizeof(*entry), HOLDER_GFP);
	if (entry && xa_err(xa_store(&plain->devices, device, entry, HOLDER_GFP))) {
		kfree(entry);
		entry = NULL;
	}
	if (!entry)
		plain_refund(plain, PLAIN_DEVICE_COST);
	return entry;
}

static int plain_again(struct plain *plain, struct plain_buffer *buffer,
		       struct ttmem_ioc_track_alloc *args, void __user *user)
{
	struct plain_device *entry = xa_load(&plain->devices, args->device);
	int r;

	if (buffer->size != args->size)
		return -EEXIST;
	if (buffer->refs == U32_MAX)
		return -EOVERFLOW;
	args->refs = buffer->refs + 1;
	r = file_put_args(user, args, sizeof(*args));
	if (r < 0)
		return r;
	buffer->refs++;
	spin_lock(&plain->figures_lock);
	entry->memory[args->type].allocs++;
	spin_unlock(&plain->figures_lock);
	return 0;
}

static int plain_list(struct plain *plain)
{
	int r = plain->is_listed ? 0 : holder_add(&plain->holder);

	plain->is_listed = r == 0;
	return r;
}

/* A client that never had a buffer need not be listed. */
static void plain_unlist(struct plain *plain)
{
	if (plain->births)
		return;
	holder_remove(&plain->holder);
	plain->is_listed = false;
}

static void plain_free_buffer(struct plain *plain, struct plain_buffer *buffer)
{
	kmem_cache_free(plain_cache, buffer);
	plain_refund(plain, sizeof(*buffer));
}

static struct plain_buffer *plain_new_buffer(struct plain *plain,
					     const struct ttmem_ioc_track_alloc *args)
{
	struct plain_buffer *buffer;

	if (!plain_charge(plain, sizeof(*buffer)))
		return NULL;
	buffer = kmem_cache_alloc(plain_cache, HOLDER_GFP);
	if (!buffer) {
		plain_refund(plain, sizeof(*buffer));
		return NULL;
	}
	buffer->device = args->device;
	buffer->type = args->type;
	buffer->address = args->address;
	buffer->size = args->size;
	buffer->refs = 1;
	return buffer;
}

static void plain_count(struct plain *plain, struct holder_memory *memory, u64 size)
{
	spin_lock(&plain->figures_lock);
	memory->bytes += size;
	memory->buffers++;
	memory->allocs++;
	memory->peak = max(memory->peak, memory->bytes);
	spin_unlock(&plain->figures_lock);
}

static int plain_add(struct plain *plain, struct ttmem_ioc_track_alloc *args, void __user *user,
		     struct rb_node *parent, struct rb_node **link)
{
	struct plain_device *entry;
	struct plain_buffer *buffer;
	int r;

	if (plain->count >= READ_ONCE(plain_buffers))
		return -ENOSPC;
	entry = plain_device(plain, args->device);
	buffer = entry ? plain_new_buffer(plain, args) : NULL;
	if (!buffer)
		return -ENOMEM;
	r = plain_list(plain);
	if (r < 0)
		goto free;
	args->refs = 1;
	r = file_put_args(user, args, sizeof(*args));
	if (r < 0)
		goto unlist;
	buffer->birth = ++plain->births;
	rb_link_node(&buffer->node, parent, link);
	rb_insert_color(&buffer->node, &plain->buffers);
	plain->count++;
	plain_count(plain, &entry->memory[args->type], args->size);
	return 0;

unlist:
	plain_unlist(plain);
free:
	plain_free_buffer(plain, buffer);
	return r;
}

int plain_alloc(struct plain *plain, struct ttmem_ioc_track_alloc *args, void __user *user)
{
	struct rb_node *parent, **link;
	struct plain_buffer *buffer;
	int r;

	if (args->device >= TTMEM_UAPI_DEVICES || args->type >= TTMEM_UAPI_TYPES || !args->size ||
	    args->size > TTMEM_UAPI_SIZE_MAX || args->refs || args->reserved)
		return -EINVAL;
	if (mutex_lock_killable(&plain->lock) < 0)
		return -EINTR;
	holder_adopt(&plain->holder);
	buffer = plain_find(plain, args->device, args->type, args->address, &parent, &link);
	r = buffer ? plain_again(plain, buffer, args, user)
		   : plain_add(plain, args, user, parent, link);
	mutex_unlock(&plain->lock);
	if (r == 0)
		folder_use(&plain->holder, args->device);
	return r;
}

static struct plain_buffer *plain_youngest(struct plain *plain, u32 device, u64 address)
{
	struct plain_buffer *youngest = NULL;
	u32 type;

	for (type = 0; type < TTMEM_UAPI_TYPES; type++) {
		struct plain_buffer *buffer = plain_find(plain, device, type, address, NULL, NULL);

		if (buffer && (!youngest || buffer->birth > youngest->birth))
			youngest = buffer;
	}
	return youngest;
}

static int plain_less(struct plain *plain, struct plain_buffer *buffer,
		      struct ttmem_ioc_track_free *args, void __user *user)
{
	struct plain_device *entry = xa_load(&plain->devices, buffer->device);
	struct holder_memory *memory = &entry->memory[buffer->type];
	int r;

	args->size = buffer->size;
	args->refs = buffer->refs - 1;
	r = file_put_args(user, args, sizeof(*args));
	if (r < 0)
		return r;
	buffer->refs--;
	spin_lock(&plain->figures_lock);
	memory->frees++;
	if (!buffer->refs) {
		memory->bytes -= buffer->size;
		memory->buffers--;
	}
	spin_unlock(&plain->figures_lock);
	if (buffer->refs)
		return 0;
	rb_erase(&buffer->node, &plain->buffers);
	plain->count--;
	plain_free_buffer(plain, buffer);
	return 0;
}

int plain_release(struct plain *plain, struct ttmem_ioc_track_free *args, void __user *user)
{
	struct plain_buffer *buffer;
	int r;

	if (args->device >= TTMEM_UAPI_DEVICES || args->size || args->refs || args->reserved ||
	    (args->type >= TTMEM_UAPI_TYPES && args->type != TTMEM_UAPI_ANY))
		return -EINVAL;
	if (mutex_lock_killable(&plain->lock) < 0)
		return -EINTR;
	holder_adopt(&plain->holder);
	if (args->type == TTMEM_UAPI_ANY)
		buffer = plain_youngest(plain, args->device, args->address);
	else
		buffer = plain_find(plain, args->device, args->type, args->address, NULL, NULL);
	r = buffer ? plain_less(plain, buffer, args, user) : -ENOENT;
	mutex_unlock(&plain->lock);
	return r;
}

int __init plain_init(void)
{
	plain_cache = kmem_cache_create("ttmem_buffer", sizeof(struct plain_buffer), 0,
					SLAB_ACCOUNT, NULL);
	return plain_cache ? 0 : -ENOMEM;
}

void plain_exit(void)
{
	kmem_cache_destroy(plain_cache);
}
