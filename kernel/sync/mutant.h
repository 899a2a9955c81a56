/*
 * Mutants: kernels in which one rule of the fault's protocol is left out on purpose, so that the tests can show that they notice
 * (tests/user/test_mutants.py, docs/model.md). `make MUTANT=no_pin` builds one; in every other kernel MUTANT() is the constant 0.
 * Included by .c files only: those are the ones that a mutant compiles anew.
 */
#ifndef KERNEL_SYNC_MUTANT_H
#define KERNEL_SYNC_MUTANT_H

enum mutant {
    MUTANT_none,
    MUTANT_no_relookup,     /* after a wait an attempt goes on with the VMA it had let go */
    MUTANT_no_change_count, /* recheck: the same where the address space has changed */
    MUTANT_no_size_recheck, /* the page is asked for, however short the file has become */
    MUTANT_no_owner_check, /* a page that was locked is mapped, whether or not it is still the file's */
    MUTANT_no_pin,         /* a page is waited for without a reference */
    MUTANT_not_kept,       /* the awaited page may be dropped before it is looked at again */
    MUTANT_asked_not_kept, /* the page asked for may be dropped before it is looked at */
    MUTANT_retry_forever,  /* once: may let go in every attempt */
    MUTANT_wait_anyway, /* a page that was not locked after asking is waited for with the lock kept */
    MUTANT_count_each_try,    /* each attempt counts as a fault */
    MUTANT_lost_wakeup,       /* a page's waiter queues itself, and sleeps without another look */
    MUTANT_unmap_before_lock, /* the page lock is let go between unmapping and removing */
    MUTANT_reclaim_no_freeze, /* a page is dropped whoever has a reference */
    MUTANT_copy_under_page_lock, /* write() to a file in memory copies from the program with the page locked */
    MUTANT_no_detached_check, /* a VMA that has left the tree will do */
    MUTANT_no_detach_wait,    /* a VMA leaves without waiting for the faults that have its lock */
    MUTANT_new_area_open,     /* a new VMA can be locked while its pages are still the old one's */
};

#ifndef MUTANT_BUILT
#define MUTANT_BUILT MUTANT_none
#endif

#define MUTANT(name) (MUTANT_BUILT == MUTANT_##name)

#endif
