/*
 * The page fault, from the trap to the mapped page. The walk is in mm/fault.c; read that first.
 */
#ifndef MM_FAULT_H
#define MM_FAULT_H

#include "mm/vma.h"

struct trap_frame;

enum fault_access { FAULT_READ, FAULT_WRITE, FAULT_EXEC };

/* What a handler, an attempt, or the whole fault comes to. */
enum fault_result {
    FAULT_DONE,
    FAULT_RETRY,  /* the lock is already released, f->vma may be freed memory: start over */
    FAULT_KILLED, /* a fatal signal ended the wait */
    FAULT_SIGSEGV_MAPERR,
    FAULT_SIGSEGV_ACCERR,
    FAULT_SIGBUS_ADRERR,
    FAULT_OOM,
};

/* Why a fault that ended well was needed; one for each fault. */
enum fault_reason {
    FAULT_REASON_ZERO,     /* anonymous memory, first touch */
    FAULT_REASON_COW,      /* a private copy was made */
    FAULT_REASON_CACHE,    /* page was in the cache */
    FAULT_REASON_AROUND,   /* (counts pages mapped around, not faults) */
    FAULT_REASON_IO,       /* slept for its own read */
    FAULT_REASON_OTHER_IO, /* slept for somebody else's read */
    FAULT_REASON_SWAP,
    FAULT_REASON_SPURIOUS, /* the entry was already there */
    FAULT_REASON_FAILED,   /* did not end well */
    FAULT_REASON_COUNT,
};

/* Why an attempt could not do with its VMA's lock and took mmap_lock first (mm/fault_lock.c). */
enum fault_fallback {
    FAULT_FALLBACK_NONE_THERE, /* no VMA: a hole, a stack to grow, or a call in the middle of its work */
    FAULT_FALLBACK_BUSY,       /* a writer has the VMA's lock, or waits for it */
    FAULT_FALLBACK_DETACHED, /* the VMA left the tree between the lookup and the lock */
    FAULT_FALLBACK_FORK,     /* a store into private memory while a fork copies it */
    FAULT_FALLBACK_COUNT,
};

enum fault_flag {
    FAULT_FLAG_USER = 1u << 0,      /* by the program; else by the kernel on user memory */
    FAULT_FLAG_POPULATE = 1u << 1,  /* by a populating call: no trap behind it */
    FAULT_FLAG_KEEP_LOCK = 1u << 2, /* the lock is kept across I/O, whatever vm.fault_retry says */
    FAULT_FLAG_FORCE = 1u << 3,     /* by a debugger: a private area's protection does not count */
};

/* The context handed down. A callee adds to it; it never keeps it. */
struct fault {
    struct mm *mm;
    u64 addr; /* faulting address, unaligned */
    enum fault_access access;
    u32 flags; /* enum fault_flag */

    const struct fault_lock_policy *lock; /* whose lock the attempt holds: mm/fault_lock.h */
    struct vma *vma;                      /* valid only while locked */
    pgoff_t pgoff;
    pte_t
        *ptep; /* the entry, where its table was there at the look; good while the VMA is locked */
    bool locked;            /* mmap_lock or the VMA's lock is held by this fault */
    struct vma *let_go_vma; /* the VMA that was let go: dead, unless it is taken back */
    u64 change_count;       /* of mm when the lock was let go */

    u32 attempt; /* 0 = first */
    u32 retries;
    bool looked;       /* the first look at the page cache is over: marks and hits count no more */
    bool absent;       /* page absent at the first look */
    u32 absent_looks;  /* looks, of every attempt, that found it absent */
    bool slept;        /* for the page's data, in any attempt */
    bool slept_again;  /* ... in an attempt after the first */
    bool started_read; /* this fault inserted the page and asked the disk */
    bool reread;       /* the one read-again of a failed page is spent */
    bool kept_lock_across_io;
    enum fault_reason reason;
    struct page *
        pinned; /* awaited page, held until it is looked up again (fault_pin=1, or the lock was kept) */
    struct {
        const struct page *page; /* the page slept for, or NULL; only compared, never followed */
        const struct page_cache *cache; /* where it was then */
        pgoff_t index;
    } awaited;               /* to tell a retry miss */
    u64 begin_ns, locked_ns; /* when the fault began, and its lock was taken */
    u64 wait_ns;
    struct fault
        *outer; /* the fault that this one interrupted (a fault while serving a kernel access) */
    enum fault_result outcome;
};

/*
 * Serves one access of mm's memory at addr. => FAULT_DONE or one of the errors (never FAULT_RETRY). Counted once, for the current task and the system.
 * No lock held on entry; sleeps.
 */
enum fault_result fault_user(struct mm *mm, u64 addr, enum fault_access access, u32 flags);

/* Releases the lock of the attempt after pinning the file; the only function that does so before the end of an attempt. f->vma is dead afterwards. */
struct mapped_file *fault_let_go(struct fault *f);
/* May this attempt release the lock and start over (vm.fault_retry)? */
bool fault_may_let_go(const struct fault *f);
/* Before asking the disk for a page: lets go, if the attempt may, and if that is the time (vm.fault_drop). => the file; NULL: lock kept */
struct mapped_file *fault_let_go_to_ask(struct fault *f);
/* After fault_let_go() and the wait: is the VMA locked again, and still the same (vm.fault_retry=recheck)? Otherwise start over. */
bool fault_take_back(struct fault *f);

/* Handlers by kind of VMA; lock held on entry, and on return unless they say RETRY or KILLED after letting go (f->locked tells). */
enum fault_result fault_anon(struct fault *f);
enum fault_result fault_file(struct fault *f);
enum fault_result fault_huge(struct fault *f); /* every fault on a VMA_HUGETLB area */
/* A write to a present, write-protected entry: copy on write, first write to the zero page, or write-notify of a shared page. */
enum fault_result fault_write_protected(struct fault *f);
/*
 * A write that the private VMA does not allow (FAULT_FLAG_FORCE): the page becomes one of its own, the entry does not become
 * writable. Lock held. => DONE (look again whether it is there), SIGSEGV_ACCERR (shared), and what fault_file says
 */
enum fault_result fault_write_forced(struct fault *f);
/*
 * Puts `page` (one reference, becomes the entry's) at f->addr if the entry is still `expected` (0: none), replacing and flushing what was there.
 * => FAULT_DONE (also where somebody else was first: then the reference is dropped and the reason is SPURIOUS), FAULT_OOM (reference dropped)
 */
enum fault_result fault_install_anon(struct fault *f, struct page *page, pte_t expected,
                                     enum fault_reason reason);

/* Registers the #PF handler. signal: called for a program's bad access, in its context (kernel/task). oom_kill: frees memory by ending a program;
 * => whether it chose a victim other than the caller's (then the fault is tried again). */
void fault_init(void (*signal)(struct trap_frame *frame, enum fault_result result, u64 addr,
                               enum fault_access access),
                bool (*oom_kill)(void));

const char *fault_result_name(enum fault_result result);

#endif
