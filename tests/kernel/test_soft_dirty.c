/*
 * Soft-dirty: a page is written when it has been stored to since the last clear, and not before.
 */
#include "mm/core/page_table.h"
#include "mm/soft_dirty.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"

#define BASE  0x10000000ul
#define PAGES 4
#define RW    (PROT_READ | PROT_WRITE)

static u64 page_at(unsigned i)
{
    return BASE + i * PAGE_SIZE;
}

static struct mm *enter(void)
{
    struct mm *mm = test_mm_enter();

    if (mm)
        KEXPECT_EQ(mm_mmap(mm, BASE, PAGES * PAGE_SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                           NULL, 0),
                   BASE);
    return mm;
}

/* As bit 55 of pagemap. */
static bool is_written(struct mm *mm, unsigned i)
{
    bool written;

    rwsem_read_lock(&mm->mmap_lock);
    pt_lock(&mm->space);
    const pte_t *pte = pt_find(&mm->space, page_at(i));
    written = soft_dirty_area(vma_find(mm, page_at(i))) || (pte && (*pte & PTE_SOFT_DIRTY));
    pt_unlock(&mm->space);
    rwsem_read_unlock(&mm->mmap_lock);
    return written;
}

KTEST(soft_dirty, what_is_new_counts_as_written_until_the_clear)
{
    struct mm *mm = enter();

    KASSERT(mm != NULL);
    KEXPECT(is_written(mm, 0));
    KEXPECT_EQ(soft_dirty_clear(mm), 0);
    KEXPECT(!is_written(mm, 0));
    KEXPECT_EQ(mm_munmap(mm, BASE, PAGES * PAGE_SIZE), 0);
    KEXPECT_EQ(mm_mmap(mm, BASE, PAGE_SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
               BASE);
    KEXPECT(is_written(mm, 0));
    test_mm_leave();
}

KTEST(soft_dirty, reads_do_not_write_and_each_first_store_does)
{
    struct mm *mm = enter();

    KASSERT(mm != NULL);
    KEXPECT_EQ(user_poke(page_at(0), 1), 0);
    KEXPECT_EQ(soft_dirty_clear(mm), 0);
    KEXPECT_EQ(user_peek(page_at(0)), 1);
    KEXPECT_EQ(user_peek(page_at(1)), 0);
    KEXPECT(!is_written(mm, 0) && !is_written(mm, 1));
    KEXPECT_EQ(user_poke(page_at(0), 2), 0);
    KEXPECT_EQ(user_poke(page_at(1), 2), 0);
    KEXPECT_EQ(user_poke(page_at(2), 2), 0);
    KEXPECT(is_written(mm, 0) && is_written(mm, 1) && is_written(mm, 2) && !is_written(mm, 3));
    KEXPECT_EQ(soft_dirty_clear(mm), 0);
    KEXPECT(!is_written(mm, 0) && !is_written(mm, 2));
    KEXPECT_EQ(user_peek(page_at(2)), 2);
    test_mm_leave();
}

KTEST(soft_dirty, mprotect_there_and_back_hides_no_store)
{
    struct mm *mm = enter();

    KASSERT(mm != NULL);
    KEXPECT_EQ(user_poke(page_at(0), 1), 0);
    KEXPECT_EQ(soft_dirty_clear(mm), 0);
    KEXPECT_EQ(mm_mprotect(mm, BASE, PAGE_SIZE, PROT_READ), 0);
    KEXPECT_EQ(mm_mprotect(mm, BASE, PAGE_SIZE, RW), 0);
    KEXPECT(!is_written(mm, 0));
    KEXPECT_EQ(user_poke(page_at(0), 2), 0);
    KEXPECT(is_written(mm, 0));
    KEXPECT_EQ(mm_mprotect(mm, BASE, PAGE_SIZE, PROT_READ), 0);
    KEXPECT(is_written(mm, 0));
    test_mm_leave();
}
