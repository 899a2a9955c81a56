/*
 * How a fault finds its VMA and keeps it.
 *
 * vm.fault_lock=mmap, the classical way: mmap_lock, shared, from the lookup to the store of the
 * entry. Whoever changes any area of the space keeps all faults out, and a fault that keeps its
 * lock across I/O keeps out all who want to change anything.
 *
 * vm.fault_lock=vma: mmap_lock is not touched.
 *
 *     fault                                     writer (mmap_lock exclusive)
 *     looks the VMA up: no lock            ┐
 *                                          │    puts another VMA in its place, or none
 *     takes its lock, shared, without      │    takes the old VMA's lock, exclusive:
 *       sleeping                           │      VMA_DETACHED
 *     DETACHED? then it came too late      ┘    releases it; only now works on the page tables
 *     handles the fault
 *     releases the VMA's lock
 *
 * Between the lookup and the lock the fault does not sleep, and kernel code is not preempted: no
 * grace period ends meanwhile, so what it has found is memory of a VMA, in the tree or not. Whoever
 * gets the lock first wins: the fault, then the writer waits for it before it touches a page; or
 * the writer, then the fault finds DETACHED. A VMA in the tree is never altered, so nothing else
 * has to be compared.
 *
 * Where that does not do, the fault falls back: it lets go of everything and takes mmap_lock,
 * shared. That may mean to wait for a writer, and must: the answer depends on what he does.
 *
 *     no VMA there       a stack may have to grow, and an area that is being changed may be between
 *                        two edits of one call: only the end of the call says what is there
 *     lock not free      a writer has put the VMA there and is still working on its pages
 *     DETACHED           the writer was faster: something else is there now
 *     store while a      the child is to have memory as it is at one moment (mm/fork.c), so no store
 *     fork copies        into private memory gets between the first area copied and the last
 *
 * Under mmap_lock nobody has a VMA's lock exclusively. So the fallback takes the lock of the VMA
 * that it finds, lets mmap_lock go, and is where it would have been without it: an attempt holds
 * one lock in the end, always of the same kind. Whoever holds a VMA's lock never takes mmap_lock.
 */
#include "mm/fault_lock.h"

#include "kernel/cpu/clock.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sync/mutant.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/account.h"

/* ---- Under mmap_lock ---- */

/* Nothing is held. Growing changes a VMA, so it needs the lock exclusively, and the VMA looked up again under it. */
static enum fault_result grow_stack(struct fault *f)
{
    enum fault_result result = FAULT_SIGSEGV_MAPERR;
    if (rwsem_write_lock_killable(&f->mm->mmap_lock))
        return FAULT_KILLED;
    struct vma *vma = vma_find_from(f->mm, f->addr);
    if (vma && vma->start <= f->addr)
        result = FAULT_DONE; /* another thread grew it, or mapped something here */
    else if (vma && (vma->flags & VMA_GROWSDOWN) && vma_grow_down(vma, f->addr) == 0)
        result = FAULT_DONE;
    rwsem_write_unlock(&f->mm->mmap_lock);
    return result;
}

static enum fault_result lock_mmap(struct fault *f)
{
    for (;;) {
        if (rwsem_read_lock_killable(&f->mm->mmap_lock))
            return FAULT_KILLED;
        struct vma *vma = vma_find_from(f->mm, f->addr);
        if (vma && vma->start <= f->addr) {
            f->vma = vma;
            return FAULT_DONE;
        }
        bool may_grow = vma && (vma->flags & VMA_GROWSDOWN);
        rwsem_read_unlock(&f->mm->mmap_lock);
        if (!may_grow)
            return FAULT_SIGSEGV_MAPERR;
        enum fault_result result = grow_stack(f);
        if (result != FAULT_DONE)
            return result;
    }
}

static void release_mmap(struct fault *f)
{
    rwsem_read_unlock(&f->mm->mmap_lock);
}

/* Every change of the tree moves the counter, under mmap_lock exclusive: if it stands, the VMA is in the tree. */
static bool take_back_mmap(struct fault *f)
{
    if (rwsem_read_lock_killable(&f->mm->mmap_lock))
        return false;
    if (f->mm->change_count == f->change_count || MUTANT(no_change_count) || MUTANT(no_relookup))
        return true;
    rwsem_read_unlock(&f->mm->mmap_lock);
    return false;
}

/* ---- The VMA's own lock ---- */

/* Would it be missing in a fork's child, or not, by where the copying stands? A huge area has a page of its own from the first load on. */
static bool spoils_a_fork(const struct fault *f, const struct vma *vma)
{
    bool gets_own_page = f->access == FAULT_WRITE || (vma->flags & VMA_HUGETLB);
    return gets_own_page && !(vma->flags & VMA_SHARED) && READ_ONCE(f->mm->fork_copies_pages);
}

/* From the lookup to the lock nothing sleeps. => the VMA, locked; or NULL and why not */
static struct vma *try_lock_vma(const struct fault *f, enum fault_fallback *why)
{
    struct vma *vma = vma_find(f->mm, f->addr);
    if (!vma) {
        *why = FAULT_FALLBACK_NONE_THERE;
        return NULL;
    }
    SYNC_POINT_SPIN(fault_vma_found);
    if (!rwsem_read_trylock(&vma->lock)) {
        *why = FAULT_FALLBACK_BUSY;
        return NULL;
    }
    if ((!(vma->flags & VMA_DETACHED) || MUTANT(no_detached_check)) && !spoils_a_fork(f, vma))
        return vma;
    *why = vma->flags & VMA_DETACHED ? FAULT_FALLBACK_DETACHED : FAULT_FALLBACK_FORK;
    rwsem_read_unlock(&vma->lock);
    return NULL;
}

static enum fault_result lock_own(struct fault *f)
{
    enum fault_fallback why;
    f->vma = try_lock_vma(f, &why);
    if (f->vma)
        return FAULT_DONE;
    account_lock_fallback(why);
    enum fault_result result = lock_mmap(f);
    if (result == FAULT_DONE) {
        rwsem_read_lock(&f->vma->lock);
        rwsem_read_unlock(&f->mm->mmap_lock);
    }
    return result;
}

static void release_own(struct fault *f)
{
    rwsem_read_unlock(&f->vma->lock);
}

/* Nothing says that the VMA's memory is still a VMA. */
static bool take_back_own(struct fault *f)
{
    (void)f;
    return false;
}

/* ---- The table ---- */

static const struct fault_lock_policy policies[] = {
    {"vma", lock_own, release_own, take_back_own},
    {"mmap", lock_mmap, release_mmap, take_back_mmap},
};
static const struct fault_lock_policy *policy = &policies[0];

enum fault_result fault_lock_vma(struct fault *f)
{
    f->lock = READ_ONCE(policy);
    enum fault_result result = f->lock->lock(f);
    if (result == FAULT_DONE) {
        f->locked = true;
        f->locked_ns = clock_ns();
        f->pgoff = vma_pgoff(f->vma, f->addr);
    }
    return result;
}

void fault_unlock_vma(struct fault *f)
{
    f->lock->release(f);
    account_lock_held(f);
    f->vma = NULL;
    f->ptep = NULL;
    f->locked = false;
}

bool fault_lock_vma_again(struct fault *f)
{
    if (!f->lock->take_back(f))
        return false;
    f->vma = f->let_go_vma;
    f->locked = true;
    f->locked_ns = clock_ns();
    return true;
}

int fault_lock_set_policy(const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(policies); i++) {
        if (strcmp(policies[i].name, name) == 0) {
            WRITE_ONCE(policy, &policies[i]);
            return 0;
        }
    }
    return -EINVAL;
}

const char *fault_lock_policy_name(void)
{
    return READ_ONCE(policy)->name;
}
