/*
 * VMAs and the address space that holds them.
 *
 * The tree (lib/range_tree) is changed under mmap_lock exclusive and read without a lock. A VMA in
 * the tree is never altered: whoever changes an area puts new VMAs in the place of the old ones,
 * all in one transaction (mm/vma_edit.c). So bounds, protection and file can be read under
 * mmap_lock or the VMA's own lock, in either mode; what the writer does to a VMA that leaves is one
 * thing, under its lock exclusive: VMA_DETACHED. Whoever found a VMA without a lock takes its lock
 * (without sleeping), then looks at that flag.
 */
#ifndef MM_VMA_H
#define MM_VMA_H

#include "kernel/sched/mutex.h"
#include "lib/deferred.h"
#include "lib/range_tree.h"
#include "mm/core/page_table.h"
#include "mm/mapped_file.h"

/* Protection, as PROT_* of mmap(2). */
#define PROT_NONE  0u
#define PROT_READ  1u
#define PROT_WRITE 2u
#define PROT_EXEC  4u

enum vma_flag {
    VMA_SHARED = 1u << 0,
    VMA_GROWSDOWN = 1u << 1,
    VMA_STACK = 1u << 2,
    VMA_SEQUENTIAL = 1u << 4, /* MADV_SEQUENTIAL */
    VMA_RANDOM = 1u << 5,     /* MADV_RANDOM */
    VMA_LOCKED = 1u << 6,
    VMA_NORESERVE = 1u << 7,
    VMA_DETACHED = 1u << 8,    /* no longer in the tree */
    VMA_FRESH = 1u << 9,       /* not yet in the tree; only while an edit is open */
    VMA_DONTFORK = 1u << 10,   /* a fork leaves the area out */
    VMA_WIPEONFORK = 1u << 11, /* and of this the child gets an empty one */
    VMA_DONTDUMP = 1u << 12,   /* not for core dumps; there are none */
    VMA_HUGEPAGE = 1u << 13,   /* MADV_HUGEPAGE, MADV_NOHUGEPAGE */
    VMA_NOHUGEPAGE = 1u << 14,
    VMA_ACCOUNT = 1u << 15,     /* its pages are charged (mm/commit.h) */
    VMA_LOCKONFAULT = 1u << 16, /* with VMA_LOCKED: no page is brought in before it is touched */
    VMA_HUGETLB = 1u << 20,     /* pages of 2 MiB: mm/huge.h */
    VMA_HUGE_OWNER = 1u << 21,  /* may use what was promised to its private mapping */
};

struct vma {
    u64 start, end; /* bytes, page-aligned, [start, end) */
    u32 prot, flags;
    struct mapped_file *file; /* NULL: anonymous; one reference */
    pgoff_t pgoff; /* file page at start; private memory: page number of its first address,
                                 even after it has moved; shared memory without a file: see vma_edit_new */
    struct mm *mm;
    struct rwsem lock;        /* see above; faults take it shared under fault_lock=vma */
    struct list mapping_link; /* cache->mappings, under cache->map_lock */
    /*
     * Anonymous pages of its own: 0 as long as it has had none. The fault that brings the first one
     * names it, by the name of a neighbour it could have been one area with, or by a new one. Areas
     * that have names merge only if these are the same (see vma_edit_place).
     */
    u64 anon_name;
    u64 lineage; /* rises with each area that is made; pieces keep it, the newest wins: mm/soft_dirty.h */
    bool anon_is_inherited; /* by fork: no unnamed area merges with it */
    bool was_named;         /* when the edit took it out; mmap_lock exclusive */
    bool was_robbed;       /* a huge page was taken from it: what is not there is SIGBUS for good */
    struct list edit_link; /* lists of an edit, mmap_lock exclusive */
    struct deferred deferred; /* freed after a grace period */
};

struct mm {
    struct pt_space space;
    struct range_tree vmas;
    struct rwsem mmap_lock;
    u64 change_count;        /* moved by every change of tree or VMA, under mmap_lock exclusive */
    u64 n_vmas, total_pages; /* mmap_lock */
    u64 data_pages;          /* private, writable, no stack; mmap_lock, as the next two */
    u64 locked_pages;        /* of areas with VMA_LOCKED, there or not */
    u64 commit_pages;        /* of areas with VMA_ACCOUNT */
    u64 last_anon_name;      /* atomic */
    u64 last_lineage;        /* mmap_lock exclusive */
    u64 soft_clear_lineage;  /* last_lineage when soft-dirty bits were cleared; mmap_lock */
    u64 rss_anon, rss_file;  /* pages; atomic */
    u64 rss_peak;            /* the most there were before pages went; atomic */
    u64 total_pages_peak;    /* mmap_lock */
    u64 huge_pages;          /* huge entries; atomic */
    bool has_huge_tables;    /* has (had) huge entries */
    u64 brk_start, brk_end;  /* mmap_lock */
    u64 mmap_top;            /* addresses go down from here */
    u64 stack_top, arg_start, arg_end, env_start, env_end, auxv_start, auxv_end;
    u64 stack_limit_bytes;
    u64 limit_as_pages, limit_data_pages; /* RLIMIT_AS, RLIMIT_DATA; mmap_lock */
    bool fork_copies_pages;               /* mm/fork.c; set under mmap_lock exclusive */
    u64 limit_locked_bytes;               /* RLIMIT_MEMLOCK; ~0 for who may pass it; mmap_lock */
    u64 limit_brk_bytes;                  /* RLIMIT_DATA again, for the heap alone; mmap_lock */
    u32 future_lock; /* MCL_* of mlockall while MCL_FUTURE holds, else 0; mmap_lock */
    s32 users;       /* tasks; the last one unmaps everything */
    struct list
        lazy_link; /* mm/lazy_free.c: where MADV_FREE marked pages; empty: nowhere; lazy_lock */
    u64 lazy_start, lazy_end;
    void *owner;              /* struct process, for messages */
    struct deferred deferred; /* freed after a grace period */
};

void mm_rooms_init(void); /* once at boot, after slab_init: the slabs */
/* Empty; one user; mmap_top, stack_top and the stack limit as a program without other wishes has them. NULL when out of memory */
struct mm *mm_create(void);
void mm_get(struct mm *mm);
void mm_put(struct mm *mm); /* the last user unmaps and frees all. May sleep; no mmap_lock held. */

/* Pages in memory now, and the most there ever were. */
static inline u64 mm_rss_pages(const struct mm *mm)
{
    return atomic_load(&mm->rss_anon) + atomic_load(&mm->rss_file);
}
static inline u64 mm_rss_peak(const struct mm *mm)
{
    return MAX(atomic_load(&mm->rss_peak), mm_rss_pages(mm));
}
/* Before pages go: the peak is looked at only then. Two at a time may lose the lower of their two. */
static inline void mm_note_rss(struct mm *mm)
{
    u64 pages = mm_rss_pages(mm);
    if (pages > atomic_load(&mm->rss_peak))
        atomic_store(&mm->rss_peak, pages);
}

/* Resource limits in bytes, ~0: none (getrlimit(2): AS, DATA, STACK, MEMLOCK). */
struct mm_limits {
    u64 as_bytes, data_bytes, stack_bytes, locked_bytes;
    u64 brk_bytes; /* of the heap alone */
};
#define MM_NO_LIMITS ((struct mm_limits){~0ul, ~0ul, ~0ul, ~0ul, ~0ul})
/* They hold for the space from now on. Takes mmap_lock. */
void mm_set_limits(struct mm *mm, const struct mm_limits *limits);

/* The VMA that contains addr, or NULL. mmap_lock held (either way), or without any lock if the caller does not sleep before it has locked and re-checked the VMA. */
struct vma *vma_find(struct mm *mm, u64 addr);
/* First VMA with end > addr, or NULL. mmap_lock held. */
struct vma *vma_find_from(struct mm *mm, u64 addr);

/*
 * Grows a VMA_GROWSDOWN area so that it covers addr, if the guard gap of STACK_GUARD_PAGES stays
 * free below (an area that nobody can access, or that grows down itself, may be nearer) and the
 * stack limit allows it. `vma` has left the tree afterwards.
 * => 0, -ENOMEM. mmap_lock exclusive.
 */
#define STACK_GUARD_PAGES 256
int vma_grow_down(struct vma *vma, u64 addr);

/* Has (or had) anonymous pages of its own? May become true at any time unless its lock is held exclusive. */
static inline bool vma_owns_anon(const struct vma *vma)
{
    return READ_ONCE(vma->anon_name) != 0;
}
/* A fault is about to store the first such page. The VMA's lock, or mmap_lock, held; does not sleep. */
void vma_name_anon(struct vma *vma);

/* Page of the file that addr shows. */
static inline pgoff_t vma_pgoff(const struct vma *vma, u64 addr)
{
    return vma->pgoff + ((addr - vma->start) >> PAGE_SHIFT);
}

/* The address where the VMA shows file page index (the caller checked that it does). */
static inline u64 vma_address(const struct vma *vma, pgoff_t index)
{
    return vma->start + ((index - vma->pgoff) << PAGE_SHIFT);
}

/* PTE bits for the VMA's protection (without address, accessed or dirty): PRESENT, USER, NX, the execute-only key; WRITE only if `writable` and PROT_WRITE. */
u64 vma_pte_bits(const struct vma *vma, bool writable);

/*
 * Prints the line of /proc/PID/maps for the VMA, newline and NUL included (proc(5)); cut to `size`.
 * => length without the NUL. mmap_lock held. size at least VMA_MAPS_LINE_MIN.
 */
#define VMA_MAPS_LINE_MIN 128
int vma_format_maps_line(struct vma *vma, char *buf, size_t size);

/*
 * Removes every translation of [start, end) in the mm: page-table entries, counts, frames after the
 * flush. Interrupts on. mmap_lock exclusive, or the mm has no users.
 */
void mm_zap_range(struct mm *mm, u64 start, u64 end);
/*
 * Removes the copies that a private area of a file has made of its pages, from `start` on. The cache's map_lock is held,
 * which keeps the area; mmap_lock need not be.
 */
void mm_zap_private_copies(struct vma *vma, u64 start);
/*
 * /proc/PID/clear_refs: forgets which pages were touched, of the kinds asked for. Takes mmap_lock
 * shared; sleeps.
 */
void mm_clear_referenced(struct mm *mm, bool anon, bool file);
/* Consistency of tree, counters and page tables, for tests. Takes mmap_lock shared. => NULL or a sentence */
const char *mm_check(struct mm *mm);

#endif
