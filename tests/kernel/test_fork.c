/*
 * Copies of address spaces: what is shared, what is counted, who sees whose stores, and that all comes back.
 */
#include "mm/fork.h"

#include "kernel/sched/task.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/page_table.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define BASE     0x300000000ul
#define PAGE(n)  (BASE + (u64)(n)*PAGE_SIZE)
#define BYTES(n) ((u64)(n)*PAGE_SIZE)
#define RW       (PROT_READ | PROT_WRITE)
#define ANON     (MAP_PRIVATE | MAP_ANONYMOUS)

static s64 map_anon(struct mm *mm, unsigned first, unsigned pages, u32 prot)
{
    return mm_mmap(mm, PAGE(first), BYTES(pages), prot, ANON | MAP_FIXED, NULL, 0);
}

static void touch(unsigned first, unsigned pages)
{
    for (unsigned i = first; i < first + pages; i++)
        KEXPECT_EQ(user_poke(PAGE(i), (u8)(i + 1)), 0);
}

static struct page *page_at(struct mm *mm, u64 addr)
{
    pt_lock(&mm->space);
    const pte_t *ptep = pt_find(&mm->space, addr);
    struct page *page = ptep && *ptep ? pte_page(*ptep) : NULL;
    pt_unlock(&mm->space);
    return page;
}

/* A copy of `parent`, checked. NULL: failed */
static struct mm *fork_checked(struct mm *parent)
{
    struct mm *child = NULL;
    KEXPECT_EQ(mm_fork(parent, &child), 0);
    KEXPECT(mm_check(parent) == NULL);
    KEXPECT(!child || mm_check(child) == NULL);
    return child;
}

static int peek_in(struct mm *mm, u64 addr)
{
    struct mm *mine = task_current()->mm;
    test_mm_attach(mm);
    int byte = user_peek(addr);
    test_mm_attach(mine);
    return byte;
}

static int poke_in(struct mm *mm, u64 addr, u8 byte)
{
    struct mm *mine = task_current()->mm;
    test_mm_attach(mm);
    int error = user_poke(addr, byte);
    test_mm_attach(mine);
    return error;
}

KTEST(fork, each_side_keeps_its_own_stores)
{
    struct mm *parent = test_mm_enter();
    KASSERT(parent != NULL);
    map_anon(parent, 0, 8, RW);
    touch(0, 6);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    KEXPECT_EQ(child->rss_anon, parent->rss_anon);
    KEXPECT(page_at(child, PAGE(0)) == page_at(parent, PAGE(0)));
    KEXPECT_EQ(user_poke(PAGE(0), 100), 0);
    KEXPECT_EQ(poke_in(child, PAGE(1), 101), 0);
    KEXPECT_EQ(poke_in(child, PAGE(7), 107), 0);
    KEXPECT_EQ(peek_in(child, PAGE(0)), 1);
    KEXPECT_EQ(user_peek(PAGE(1)), 2);
    KEXPECT_EQ(user_peek(PAGE(7)), 0);
    KEXPECT_EQ(peek_in(child, PAGE(5)), 6);
    KEXPECT(mm_check(child) == NULL);
    mm_put(child);
    test_mm_leave();
}

KTEST(fork, the_last_owner_writes_in_place)
{
    struct mm *parent = test_mm_enter();
    KASSERT(parent != NULL);
    map_anon(parent, 0, 1, RW);
    touch(0, 1);
    const struct page *page = page_at(parent, PAGE(0));
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    KEXPECT_EQ(page->refs, 2);
    KEXPECT_EQ(page->mapcount, 2);
    mm_put(child);
    KEXPECT_EQ(page->refs, 1);
    KEXPECT_EQ(user_poke(PAGE(0), 9), 0);
    KEXPECT(page_at(parent, PAGE(0)) == page);
    test_mm_leave();
}

KTEST(fork, areas_and_numbers_are_the_same)
{
    char here[256], there[256];
    struct memory_file file;
    memory_file_init(&file, 8, true, true);
    struct mm *parent = test_mm_enter();
    KASSERT(parent != NULL);
    map_anon(parent, 0, 4, RW);
    map_anon(parent, 8, 4, PROT_READ);
    mm_mmap(parent, PAGE(16), BYTES(4), RW, MAP_PRIVATE | MAP_FIXED, &file.file, 0);
    mm_mmap(parent, PAGE(24), BYTES(4), RW, MAP_SHARED | MAP_FIXED, &file.file, BYTES(4));
    touch(0, 2);
    touch(16, 2);
    KEXPECT_EQ(user_peek(PAGE(18)), memory_file_byte(2));
    KEXPECT_EQ(user_poke(PAGE(24), 77), 0);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    test_mm_render(parent, BASE, 64, here, sizeof(here));
    test_mm_render(child, BASE, 64, there, sizeof(there));
    KEXPECT_STREQ(there, here);
    KEXPECT_EQ(child->n_vmas, parent->n_vmas);
    KEXPECT_EQ(child->total_pages, parent->total_pages);
    KEXPECT_EQ(peek_in(child, PAGE(16)), 17);
    KEXPECT_EQ(peek_in(child, PAGE(18)), memory_file_byte(2));
    KEXPECT_EQ(peek_in(child, PAGE(24)), 77);
    KEXPECT_EQ(poke_in(child, PAGE(25), 78), 0);
    KEXPECT_EQ(user_peek(PAGE(25)), 78);
    mm_put(child);
    test_mm_leave();
    memory_file_destroy(&file);
}

KTEST(fork, a_page_behind_prot_none_comes_along)
{
    struct mm *parent = test_mm_enter();
    KASSERT(parent != NULL);
    map_anon(parent, 0, 2, RW);
    touch(0, 2);
    mm_mprotect(parent, PAGE(0), BYTES(1), PROT_NONE);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    KEXPECT_EQ(peek_in(child, PAGE(0)), -EFAULT);
    KEXPECT_EQ(mm_mprotect(child, PAGE(0), BYTES(1), RW), 0);
    KEXPECT_EQ(poke_in(child, PAGE(0), 50), 0);
    KEXPECT_EQ(mm_mprotect(parent, PAGE(0), BYTES(1), RW), 0);
    KEXPECT_EQ(user_peek(PAGE(0)), 1);
    KEXPECT_EQ(peek_in(child, PAGE(0)), 50);
    mm_put(child);
    test_mm_leave();
}

KTEST(fork, a_page_with_too_many_owners_refuses)
{
    struct mm *parent = test_mm_enter(), *child = NULL;
    KASSERT(parent != NULL);
    map_anon(parent, 0, 4, RW);
    touch(0, 4);
    u64 frames = test_frames_settled();
    struct page *page = page_at(parent, PAGE(2));
    s32 refs = page->refs;
    atomic_store(&page->refs, 1 << 30);
    KEXPECT_EQ(mm_fork(parent, &child), -ENOMEM);
    KEXPECT_EQ(page->refs, 1 << 30);
    atomic_store(&page->refs, refs);
    KEXPECT_EQ(test_frames_settled(), frames);
    KEXPECT_EQ(user_poke(PAGE(2), 3), 0);
    test_mm_leave();
}

#define BIG_PAGES 4096u /* 16 MiB */

KTEST(fork, a_hundred_forks_give_every_frame_back)
{
    struct mm *parent = test_mm_enter();
    KASSERT(parent != NULL);
    map_anon(parent, 0, BIG_PAGES, RW);
    touch(0, BIG_PAGES);
    u64 frames = test_frames_settled();
    for (unsigned i = 0; i < 100 && !ktest_has_failed(); i++) {
        struct mm *child = NULL;
        KASSERT_EQ(mm_fork(parent, &child), 0);
        KEXPECT_EQ(poke_in(child, PAGE(i * 31 % BIG_PAGES), 1), 0);
        mm_put(child);
    }
    KEXPECT_EQ(test_frames_settled(), frames);
    test_mm_leave();
}

/* A sparse space: as many tables as areas, whatever lies between. */
KTEST(fork, untouched_memory_costs_nothing)
{
    struct mm *parent = test_mm_enter();
    KASSERT(parent != NULL);
    KEXPECT(mm_mmap(parent, PAGE(0), 1ul << 40, RW, ANON | MAP_FIXED | MAP_NORESERVE, NULL, 0) > 0);
    KEXPECT_EQ(user_poke(PAGE(0), 1), 0);
    KEXPECT_EQ(user_poke(PAGE(0) + (1ul << 40) - PAGE_SIZE, 2), 0);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    KEXPECT_EQ(child->rss_anon, 2);
    KEXPECT_EQ(peek_in(child, PAGE(0) + (1ul << 40) - PAGE_SIZE), 2);
    mm_put(child);
    test_mm_leave();
}

/* Is the page in memory, as mincore says in the space? Its answer goes to page 15. */
static u8 in_memory(struct mm *mm, unsigned page)
{
    u8 there = 0xff;
    struct mm *mine = task_current()->mm;
    test_mm_attach(mm);
    KEXPECT_EQ(mm_mincore(mm, PAGE(page), PAGE_SIZE, PAGE(15)), 0);
    KEXPECT_EQ(copy_from_user(&there, PAGE(15), 1), 0);
    test_mm_attach(mine);
    return there;
}

/* Pages of zeros that were only read come along where the area has pages of its own: 0 and 1 are of such an area, 4 is not. */
KTEST(fork, the_zero_page_comes_along_with_pages_of_the_area)
{
    struct mm *parent = test_mm_enter();
    KASSERT(parent != NULL);
    map_anon(parent, 0, 3, RW);
    map_anon(parent, 4, 1, RW);
    map_anon(parent, 15, 1, RW);
    touch(0, 1);
    KEXPECT_EQ(user_peek(PAGE(1)), 0);
    KEXPECT_EQ(user_peek(PAGE(4)), 0);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    static const u8 wanted[] = {1, 1, 0, 0, 0};
    for (unsigned i = 0; i < 5; i++)
        if (i != 3 && !KEXPECT_EQ(in_memory(child, i), wanted[i]))
            ktest_note("page %u", i);
    KEXPECT_EQ(child->rss_anon, 2); /* page 0, and page 15 by the answer */
    KEXPECT_EQ(poke_in(child, PAGE(1), 9), 0);
    KEXPECT_EQ(peek_in(child, PAGE(1)), 9);
    KEXPECT_EQ(peek_in(parent, PAGE(1)), 0);
    mm_put(child);
    test_mm_leave();
}

/* An area that has grown counts as one with pages of its own, though it was only read. */
KTEST(fork, a_grown_area_brings_its_zero_pages_along)
{
    struct mm *parent = test_mm_enter();
    KASSERT(parent != NULL);
    KEXPECT(mm_mmap(parent, PAGE(8), BYTES(2), PROT_READ, ANON | MAP_FIXED | MAP_GROWSDOWN, NULL,
                    0) > 0);
    map_anon(parent, 15, 1, RW);
    KEXPECT_EQ(user_peek(PAGE(9)), 0);
    KEXPECT_EQ(user_peek(PAGE(6)), 0);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    KEXPECT_EQ(in_memory(child, 6), 1);
    KEXPECT_EQ(in_memory(child, 7), 0);
    KEXPECT_EQ(in_memory(child, 9), 1);
    mm_put(child);
    test_mm_leave();
}

/* ---- Other threads of the parent ---- */

#define WRITERS 3
#define FORKS   60

struct writers {
    struct mm *mm;
    bool must_stop;
    u64 stored[WRITERS]; /* by the writer itself, after the store */
    u32 next;
};

static void write_on(void *arg)
{
    struct writers *w = arg;
    u32 me = atomic_add(&w->next, 1) - 1;
    test_mm_attach(w->mm);
    for (u64 n = 1; !READ_ONCE(w->must_stop); n++) {
        if (copy_to_user(PAGE(me), &n, sizeof(n)))
            break;
        WRITE_ONCE(w->stored[me], n);
        busy_moment();
        if (n % 8 == 0)
            sched_yield();
    }
    test_mm_attach(NULL);
}

static u64 read_word(struct mm *mm, unsigned page)
{
    u64 word = 0;
    struct mm *mine = task_current()->mm;
    test_mm_attach(mm);
    KEXPECT_EQ(copy_from_user(&word, PAGE(page), sizeof(word)), 0);
    test_mm_attach(mine);
    return word;
}

/* What the child holds does not move any more, and no store of the parent's is lost. */
static void look_at_child(struct writers *w, struct mm *child)
{
    u64 first[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++)
        first[i] = read_word(child, i);
    for (unsigned round = 0; round < 4; round++) {
        sched_yield();
        for (unsigned i = 0; i < WRITERS; i++)
            KEXPECT_EQ(read_word(child, i), first[i]);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        u64 told = READ_ONCE(w->stored[i]);
        KEXPECT(read_word(w->mm, i) >= told);
    }
}

KTEST(fork, stores_of_other_threads_stay_in_the_parent)
{
    struct mm *parent = test_mm_enter();
    struct test_threads threads = {0};
    struct writers w = {.mm = parent};
    KASSERT(parent != NULL);
    map_anon(parent, 0, WRITERS, RW);
    touch(0, WRITERS);
    for (unsigned i = 0; i < WRITERS; i++)
        threads_add(&threads, write_on, &w);
    for (unsigned i = 0; i < FORKS && !ktest_has_failed(); i++) {
        struct mm *child = NULL;
        if (KEXPECT_EQ(mm_fork(parent, &child), 0)) {
            look_at_child(&w, child);
            mm_put(child);
        }
        sched_yield();
    }
    WRITE_ONCE(w.must_stop, true);
    KEXPECT_EQ(threads_join(&threads), 0);
    for (unsigned i = 0; i < WRITERS; i++)
        KEXPECT_EQ(read_word(parent, i), w.stored[i]);
    test_mm_leave();
}

/* ---- Limits ---- */

KTEST(fork, limits_come_along_and_hold)
{
    struct mm *parent = test_mm_enter();
    KASSERT(parent != NULL);
    map_anon(parent, 0, 4, RW);
    struct mm_limits limits = MM_NO_LIMITS;
    limits.as_bytes = BYTES(8);
    mm_set_limits(parent, &limits);
    struct mm *child = fork_checked(parent);
    KASSERT(child != NULL);
    KEXPECT_EQ(map_anon(child, 8, 5, RW), -ENOMEM);
    KEXPECT(map_anon(child, 8, 4, PROT_READ) > 0);
    limits = MM_NO_LIMITS;
    limits.data_bytes = BYTES(6);
    mm_set_limits(child, &limits);
    KEXPECT_EQ(map_anon(child, 16, 3, RW), -ENOMEM);
    KEXPECT(map_anon(child, 16, 3, PROT_READ) > 0);
    KEXPECT(map_anon(child, 24, 2, RW) > 0);
    KEXPECT_EQ(mm_mprotect(child, PAGE(16), BYTES(1), RW), -ENOMEM);
    KEXPECT_EQ(mm_munmap(child, PAGE(24), BYTES(2)), 0);
    KEXPECT_EQ(mm_mprotect(child, PAGE(16), BYTES(1), RW), 0);
    KEXPECT(mm_check(child) == NULL);
    mm_put(child);
    test_mm_leave();
}
