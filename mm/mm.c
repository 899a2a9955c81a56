/*
 * Address spaces: made, shared by tasks, and ended with the last of them.
 */
#include "kernel/log/log.h"
#include "kernel/sched/grace.h"
#include "mm/commit.h"
#include "mm/core/slab.h"
#include "mm/lazy_free.h"
#include "mm/vma_internal.h"

/* Room for the stack below the end of the user half; maps begin under it. */
#define STACK_ROOM_BYTES          (128ul << 20)
#define STACK_LIMIT_DEFAULT_BYTES (8ul << 20)

/* Two are held only by fork: the parent's, then that of the child that nobody sees yet. */
static NESTING_SLEEP_LOCK_CLASS(mmap_lock_class, "mmap_lock");

static struct slab_cache *mm_cache;

void mm_rooms_init(void)
{
    mm_cache = slab_cache_create("mm", sizeof(struct mm), 0);
    vma_edit_rooms_init();
    mm_report_init();
}

struct mm *mm_create(void)
{
    ASSERT(mm_cache);
    struct mm *mm = slab_alloc_zeroed(mm_cache);
    if (!mm)
        return NULL;
    if (pt_space_init(&mm->space)) {
        slab_free(mm_cache, mm);
        return NULL;
    }
    range_tree_init(&mm->vmas, &vma_tree_ops, mm);
    rwsem_init(&mm->mmap_lock, &mmap_lock_class, "mmap_lock");
    mm->mmap_top = USER_ADDRESS_END - STACK_ROOM_BYTES;
    mm->stack_top = USER_ADDRESS_END;
    mm->stack_limit_bytes = STACK_LIMIT_DEFAULT_BYTES;
    mm->limit_as_pages = mm->limit_data_pages = ~0ul;
    mm->limit_locked_bytes = mm->limit_brk_bytes = ~0ul;
    mm->users = 1;
    return mm;
}

void mm_set_limits(struct mm *mm, const struct mm_limits *limits)
{
    rwsem_write_lock(&mm->mmap_lock);
    mm->limit_as_pages = limits->as_bytes >> PAGE_SHIFT;
    mm->limit_data_pages = limits->data_bytes >> PAGE_SHIFT;
    mm->stack_limit_bytes = limits->stack_bytes;
    mm->limit_locked_bytes = limits->locked_bytes;
    mm->limit_brk_bytes = limits->brk_bytes;
    rwsem_write_unlock(&mm->mmap_lock);
}

void mm_get(struct mm *mm)
{
    atomic_add(&mm->users, 1);
}

static void collect_vma(void *dead, const struct range_entry *entry)
{
    struct vma *vma = entry->item;
    list_add_tail(dead, &vma->edit_link);
}

static void mm_free(struct deferred *deferred)
{
    slab_free(mm_cache, container_of(deferred, struct mm, deferred));
}

/*
 * A report may look an area up without being a user (mm/report.c), so areas are detached as by any call, and `mm` stays for a
 * grace period. Else nobody runs in it any more, but reclaim and truncation may still come by the files' lists: so
 * everything is zapped first, then the VMAs leave the lists, and only then the page table ends.
 */
static void destroy(struct mm *mm)
{
    struct list dead = LIST_INIT(dead);
    struct vma *vma;

    lazy_free_forget(mm);
    range_tree_destroy(&mm->vmas, collect_vma, &dead);
    list_for_each (vma, &dead, edit_link) {
        vma_detach(vma);
        mm_zap_range(mm, vma->start, vma->end);
    }
    list_for_each (vma, &dead, edit_link)
        vma_unlink_mapping(vma);
    vma_bury(&dead);
    commit_uncharge(mm->commit_pages);
    if (mm->rss_anon || mm->rss_file || mm->huge_pages)
        panic("address space ends with %lu anonymous, %lu file and %lu huge pages", mm->rss_anon,
              mm->rss_file, mm->huge_pages);
    pt_space_destroy(&mm->space);
    mm->deferred.free = mm_free;
    grace_defer(&mm->deferred);
}

void mm_put(struct mm *mm)
{
    s32 users = atomic_sub(&mm->users, 1);
    ASSERT(users >= 0);
    if (users == 0)
        destroy(mm);
}
