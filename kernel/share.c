/* SPDX-License-Identifier: GPL-2.0 */

/* The list of users who have books or report buffers, and the two limits. */

#include "kernel/share.h"

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "kernel/holder.h"

static unsigned int total_mib;
module_param_named(total_mib, total_mib, uint, 0644);
MODULE_PARM_DESC(
	total_mib,
	"MiB that all books and clients may have together; 0 = a quarter of the memory (0)");

static unsigned int user_mib;
module_param_named(user_mib, user_mib, uint, 0644);
MODULE_PARM_DESC(
	user_mib,
	"MiB that the books and clients of one user may have together; 0 = half of total_mib (0)");

DEFINE_MUTEX(share_lock);
LIST_HEAD(share_list);
static atomic_long_t share_pages;

static unsigned long share_total_pages(void)
{
	unsigned int mib = READ_ONCE(total_mib);

	return mib ? (unsigned long)mib << (20 - PAGE_SHIFT) : totalram_pages() / 4;
}

static unsigned long share_user_pages(void)
{
	unsigned int mib = READ_ONCE(user_mib);

	return mib ? (unsigned long)mib << (20 - PAGE_SHIFT) : share_total_pages() / 2;
}

/* Within a user namespace a user may have tens of thousands of other uids. */
kuid_t share_payer(void)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_euid();

	for (; ns->parent; ns = ns->parent)
		uid = ns->owner;
	return uid;
}

struct share *share_from(u64 uid)
{
	struct share *share;

	list_for_each_entry(share, &share_list, link)
	{
		if (__kuid_val(share->uid) >= uid)
			return share;
	}
	return NULL;
}

/* Allocates before taking the lock: waiting for memory delays nobody else. */
struct share *share_get(kuid_t payer, enum share_kind kind)
{
	struct share *fresh = kzalloc(sizeof(*fresh), HOLDER_GFP);
	struct share *share;

	if (!fresh)
		return NULL;
	fresh->uid = payer;
	mutex_lock(&share_lock);
	share = share_from(__kuid_val(payer));
	if (!share || !uid_eq(share->uid, payer)) {
		list_add_tail(&fresh->link, share ? &share->link : &share_list);
		share = fresh;
		fresh = NULL;
	}
	share->holders[kind]++;
	mutex_unlock(&share_lock);
	kfree(fresh);
	return share;
}

void share_put(struct share *share, enum share_kind kind)
{
	bool is_last;

	mutex_lock(&share_lock);
	share->holders[kind]--;
	is_last = !share->holders[SHARE_BOOK] && !share->holders[SHARE_CLIENT];
	if (is_last)
		list_del(&share->link);
	mutex_unlock(&share_lock);
	if (is_last)
		kfree(share);
}

/* The capability is checked only where it matters, and without an audit record. */
bool share_charge(struct share *share)
{
	if (atomic_long_inc_return(&share->pages) > share_user_pages() &&
	    !ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE))
		goto refuse;
	if (atomic_long_inc_return(&share_pages) > share_total_pages())
		goto refuse_total;
	return true;

refuse_total:
	atomic_long_dec(&share_pages);
refuse:
	atomic_long_dec(&share->pages);
	return false;
}

void share_refund(struct share *share, unsigned long pages)
{
	atomic_long_sub(pages, &share_pages);
	atomic_long_sub(pages, &share->pages);
}

u64 share_total(void)
{
	return (u64)atomic_long_read(&share_pages) << PAGE_SHIFT;
}

u64 share_total_limit(void)
{
	return (u64)share_total_pages() << PAGE_SHIFT;
}

u64 share_user_limit(void)
{
	return (u64)share_user_pages() << PAGE_SHIFT;
}
