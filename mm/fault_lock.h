/*
 * How a fault finds its VMA and keeps it: the policies of vm.fault_lock. mm/fault_lock.c explains
 * them.
 */
#ifndef MM_FAULT_LOCK_H
#define MM_FAULT_LOCK_H

#include "mm/fault.h"

struct fault_lock_policy {
    const char *name;
    /* Finds and locks the VMA of f->addr. => DONE: f->vma is valid; SIGSEGV_MAPERR, KILLED: nothing is locked */
    enum fault_result (*lock)(struct fault *f);
    /* Undoes `lock`. f->vma is still set. */
    void (*release)(struct fault *f);
    /* After a release: locks again if nothing has changed since f->change_count. => whether f->let_go_vma is alive and locked */
    bool (*take_back)(struct fault *f);
};

/*
 * The VMA of f->addr, found and locked by the policy of the moment; a stack is grown where needed.
 * => DONE with f->vma, f->pgoff and f->locked set; otherwise nothing is held: SIGSEGV_MAPERR, KILLED.
 * No lock held; sleeps.
 */
enum fault_result fault_lock_vma(struct fault *f);
/* Releases it, by the policy that has locked it. f->vma is NULL afterwards, and what it pointed at may be freed. */
void fault_unlock_vma(struct fault *f);
/*
 * After fault_let_go(): has it again, if the policy can tell that the VMA is still what it was.
 * => whether f->vma is locked again. No lock held; sleeps.
 */
bool fault_lock_vma_again(struct fault *f);

int fault_lock_set_policy(const char *name); /* => 0 or -EINVAL; from the next attempt on */
const char *fault_lock_policy_name(void);

#endif
