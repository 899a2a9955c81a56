/*
 * The page fault: the restart loop.
 *
 *     fault_user ── attempt ──┬─ fault_lock_vma   fault_lock.c: find the VMA and lock it
 *         ^                   ├─ check_access     may this VMA be read, written, executed?
 *         │                   └─ handle           fault_anon.c, fault_file.c, or the entry is there already
 *         └────── RETRY ──────┘                   a handler had to wait for the disk: it let the lock go
 *
 * No lock is held across I/O: a handler that must wait calls fault_let_go() first, sleeps, and returns FAULT_RETRY.
 * By then everything may have changed (the VMA unmapped, protected, replaced; the page truncated, dropped, read in by
 * somebody else), so the loop starts from nothing: only `struct fault`'s flags, and what is to be counted, survive.
 * The alternative is vm.fault_retry=recheck: take the lock again and go on, if the change counter says that no area of the
 * whole space has changed. It saves the lookup of the VMA, and nothing else: the page and the entry are looked up as always.
 * It is one with vm.fault_lock=mmap only: a VMA's own lock is let go together with the last thing that keeps the VMA in memory.
 *
 * A fault that may let go for ever (`many`, `recheck`) can be starved by another program that drops its page each time.
 * `once` bounds the work: the second attempt keeps the lock.
 */
#include "mm/fault.h"

#include "kernel/log/trace.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sched/task.h"
#include "kernel/sync/mutant.h"
#include "mm/account.h"
#include "mm/core/tlb.h"
#include "mm/fault_internal.h"
#include "mm/fault_lock.h"
#include "mm/knobs.h"

bool fault_may_let_go(const struct fault *f)
{
    return !(f->flags & FAULT_FLAG_KEEP_LOCK) && fault_retry_policy->may_let_go(f);
}

struct mapped_file *fault_let_go(struct fault *f)
{
    struct mapped_file *file = f->vma->file;
    mapped_file_get(file);
    f->let_go_vma = f->vma;
    f->change_count = READ_ONCE(f->mm->change_count);
    fault_unlock_vma(f);
    SYNC_POINT(fault_lock_dropped);
    return file;
}

struct mapped_file *fault_let_go_to_ask(struct fault *f)
{
    return fault_drop_policy->before_asking && fault_may_let_go(f) ? fault_let_go(f) : NULL;
}

bool fault_take_back(struct fault *f)
{
    return (fault_retry_policy->takes_back || MUTANT(no_relookup)) && fault_lock_vma_again(f);
}

/*
 * On x86 whatever is mapped writable or executable can be read, but for execute-only areas where protection keys
 * exist; there the key, not the page table, refuses.
 */
static bool vma_allows_read(const struct vma *vma)
{
    if (vma->prot == PROT_EXEC)
        return !cpu_features.pku;
    return vma->prot & (PROT_READ | PROT_WRITE | PROT_EXEC);
}

static enum fault_result check_access(const struct fault *f)
{
    bool allowed = f->access == FAULT_WRITE  ? f->vma->prot & PROT_WRITE
                   : f->access == FAULT_EXEC ? f->vma->prot & PROT_EXEC
                                             : vma_allows_read(f->vma);
    return allowed ? FAULT_DONE : FAULT_SIGSEGV_ACCERR;
}

/*
 * The entry as it is now. It can change until pt_lock is held again; whoever stores one compares first. Its table stays
 * while the VMA is locked. Not so the tables above, as long as there is none below them for this address: an unmapping
 * next door may free them, so the way down needs the lock.
 */
static pte_t look_at_entry(struct fault *f)
{
    pt_lock(&f->mm->space);
    f->ptep = pt_find(&f->mm->space, f->addr);
    pte_t pte = f->ptep ? READ_ONCE(*f->ptep) : 0;
    pt_unlock(&f->mm->space);
    return pte;
}

static bool entry_serves(const struct fault *f, pte_t pte)
{
    return pte_is_present(pte) && (f->access != FAULT_WRITE || (pte & PTE_WRITE));
}

static enum fault_result handle(struct fault *f)
{
    if (f->vma->flags & VMA_HUGETLB)
        return fault_huge(f);
    for (;;) {
        pte_t pte = look_at_entry(f);
        if (entry_serves(f, pte)) {
            /* Somebody else filled it, or this CPU still remembers the weaker entry that was here. */
            tlb_flush_local_page(f->addr);
            f->reason = FAULT_REASON_SPURIOUS;
            return FAULT_DONE;
        }
        enum fault_result result = pte_is_present(pte) ? fault_write_protected(f)
                                   : f->vma->file      ? fault_file(f)
                                                       : fault_anon(f);
        if (result != FAULT_DONE || f->reason != FAULT_REASON_SPURIOUS)
            return result;
        /* Another thread stored an entry first: does it serve this access too? */
    }
}

/* What the area does not allow, done nevertheless. */
static enum fault_result force(struct fault *f)
{
    if (f->access == FAULT_WRITE)
        return fault_write_forced(f);
    return f->vma->prot == PROT_NONE ? FAULT_SIGSEGV_ACCERR : handle(f);
}

/* Once through. Leaves with no lock held, whatever it returns. */
static enum fault_result attempt(struct fault *f)
{
    enum fault_result result = fault_lock_vma(f);
    if (result != FAULT_DONE)
        return result;
    SYNC_POINT(fault_vma_locked);
    result = check_access(f);
    if (result == FAULT_DONE)
        result = handle(f);
    else if (f->flags & FAULT_FLAG_FORCE)
        result = force(f);
    if (f->locked)
        fault_unlock_vma(f);
    return result;
}

static void start_over(struct fault *f)
{
    f->attempt++;
    account_fault_retry(f);
    TRACE(fault_retry, .addr = f->addr, .attempt = f->attempt);
    SYNC_POINT(fault_retry);
}

enum fault_result fault_user(struct mm *mm, u64 addr, enum fault_access access, u32 flags)
{
    struct fault f = {
        .mm = mm, .addr = addr, .access = access, .flags = flags, .reason = FAULT_REASON_FAILED};
    enum fault_result result;

    account_fault_begin(&f);
    while ((result = attempt(&f)) == FAULT_RETRY ||
           (result == FAULT_OOM && fault_memory_was_freed(&f)))
        start_over(&f);
    fault_unpin(&f);
    account_fault_end(&f, result);
    return result;
}

const char *fault_result_name(enum fault_result result)
{
    static const char *const names[] = {
        [FAULT_DONE] = "done",
        [FAULT_RETRY] = "retry",
        [FAULT_KILLED] = "killed",
        [FAULT_SIGSEGV_MAPERR] = "SIGSEGV (no mapping)",
        [FAULT_OOM] = "out of memory",
        [FAULT_SIGSEGV_ACCERR] = "SIGSEGV (no permission)",
        [FAULT_SIGBUS_ADRERR] = "SIGBUS (no such page, or unreadable)",
    };
    return names[result];
}
