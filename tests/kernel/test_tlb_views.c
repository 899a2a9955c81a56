/*
 * What another CPU sees after each change of an address space. A peer on the second CPU first uses a
 * page, so that its TLB remembers the translation; then the test's thread changes the map; then the
 * peer uses the page again and must see the change. Between its two uses the peer never switches, so
 * nothing but the shootdown makes it forget.
 *
 * With ktest.mutant=no_shootdown every test of this file fails (tests/user/test_tlb_mutant.py).
 * What the peer then still reaches may be a freed frame, so it only reads where frames are freed.
 */
#include "kernel/sched/task.h"
#include "mm/core/tlb.h"
#include "mm/fork.h"
#include "mm/reclaim.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"

#define BASE     0x300000000ul
#define PAGE(n)  (BASE + (u64)(n)*PAGE_SIZE)
#define BYTES(n) ((u64)(n)*PAGE_SIZE)
#define RW       (PROT_READ | PROT_WRITE)
#define ANON     (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)
#define OLD      0x5a
#define NEW      0xa5
#define PAGES    64

/* ---- The peer ---- */

enum peer_order { PEER_PEEK, PEER_POKE, PEER_END };

struct peer {
    struct task *task;
    enum peer_order order;
    u64 addr;
    int result;
    u32 asked, answered; /* rounds */
};

static void peer_main(void *arg)
{
    struct peer *peer = arg;

    for (u32 round = 1;; round++) {
        while (atomic_load(&peer->asked) < round)
            cpu_pause();
        if (peer->order == PEER_END)
            return;
        peer->result =
            peer->order == PEER_PEEK ? user_peek(peer->addr) : user_poke(peer->addr, NEW);
        atomic_store(&peer->answered, round);
    }
}

static int peer_ask(struct peer *peer, enum peer_order order, u64 addr)
{
    peer->order = order;
    peer->addr = addr;
    u32 round = atomic_add(&peer->asked, 1);

    while (order != PEER_END && atomic_load(&peer->answered) != round)
        cpu_pause();
    return peer->result;
}

static int peer_peek(struct peer *peer, u64 addr)
{
    return peer_ask(peer, PEER_PEEK, addr);
}

static int peer_poke(struct peer *peer, u64 addr)
{
    return peer_ask(peer, PEER_POKE, addr);
}

/* ---- The stage: a space, a file in it if asked for, and the peer ---- */

struct stage {
    struct mm *mm;
    struct peer peer;
    struct memory_file file;
    bool has_file;
};

static struct stage stage; /* tests run one at a time */

static bool start_peer(void)
{
    struct peer *peer = &stage.peer;

    peer->task = task_create_stopped("tlb-peer", peer_main, peer, cpu_index() == 0 ? 1 : 0);
    if (!KEXPECT(peer->task != NULL))
        return false;
    peer->task->mm = stage.mm;
    peer->task->space = &stage.mm->space;
    task_start(peer->task);
    return true;
}

static bool enter(void)
{
    stage = (struct stage){.mm = test_mm_enter()};
    return stage.mm && start_peer();
}

/* PAGES anonymous pages at PAGE(0), OLD in the first byte of each; the peer has read page 1. */
static bool enter_anonymous(void)
{
    if (!enter() || !KEXPECT_EQ(mm_mmap(stage.mm, BASE, BYTES(PAGES), RW, ANON, NULL, 0), BASE))
        return false;
    for (unsigned i = 0; i < PAGES; i++)
        KEXPECT_EQ(user_poke(PAGE(i), OLD), 0);
    return KEXPECT_EQ(peer_peek(&stage.peer, PAGE(1)), OLD);
}

/* The same with a file; readable only, and the peer has read page 1. */
static bool enter_file(u32 prot, u32 share)
{
    if (!enter())
        return false;
    memory_file_init(&stage.file, PAGES, true, true);
    stage.has_file = true;
    s64 at = mm_mmap(stage.mm, BASE, BYTES(PAGES), prot, share | MAP_FIXED, &stage.file.file, 0);
    return KEXPECT_EQ(at, BASE) && KEXPECT_EQ(peer_peek(&stage.peer, PAGE(1)), memory_file_byte(1));
}

static void leave(void)
{
    if (stage.peer.task) {
        peer_ask(&stage.peer, PEER_END, 0);
        task_join(stage.peer.task);
    }
    if (stage.mm)
        test_mm_leave();
    if (stage.has_file)
        memory_file_destroy(&stage.file);
}

#define TLB_VIEW(name)             \
    static void view_##name(void); \
    KTEST(tlb_views, name)         \
    {                              \
        if (cpu_count() < 2)       \
            KTEST_SKIP("one CPU"); \
        view_##name();             \
        leave();                   \
    }                              \
    static void view_##name(void)

static struct peer *const peer = &stage.peer;

/* ---- Taken away ---- */

TLB_VIEW(munmap)
{
    KASSERT(enter_anonymous());
    KEXPECT_EQ(mm_munmap(stage.mm, PAGE(1), BYTES(1)), 0);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), -EFAULT);
}

TLB_VIEW(munmap_of_more_pages_than_are_flushed_one_by_one)
{
    KASSERT(enter_anonymous());
    KEXPECT(PAGES > TLB_FLUSH_ALL_ABOVE);
    KEXPECT_EQ(mm_munmap(stage.mm, BASE, BYTES(PAGES)), 0);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), -EFAULT);
}

TLB_VIEW(mprotect_to_none)
{
    KASSERT(enter_anonymous());
    KEXPECT_EQ(mm_mprotect(stage.mm, PAGE(1), BYTES(1), PROT_NONE), 0);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), -EFAULT);
}

TLB_VIEW(mprotect_to_read_only)
{
    KASSERT(enter_anonymous());
    KEXPECT_EQ(peer_poke(peer, PAGE(1)), 0);
    KEXPECT_EQ(mm_mprotect(stage.mm, PAGE(1), BYTES(1), PROT_READ), 0);
    KEXPECT_EQ(peer_poke(peer, PAGE(1)), -EFAULT);
}

TLB_VIEW(mremap_moves)
{
    KASSERT(enter_anonymous());
    s64 at = mm_mremap(stage.mm, PAGE(1), BYTES(1), BYTES(1), MREMAP_MAYMOVE | MREMAP_FIXED,
                       PAGE(PAGES + 8));
    KEXPECT_EQ(at, PAGE(PAGES + 8));
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), -EFAULT);
    KEXPECT_EQ(peer_peek(peer, PAGE(PAGES + 8)), OLD);
}

TLB_VIEW(mremap_moves_and_leaves_the_area)
{
    KASSERT(enter_anonymous());
    s64 at = mm_mremap(stage.mm, PAGE(1), BYTES(1), BYTES(1), MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
    KEXPECT(at > 0);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), 0);
}

TLB_VIEW(mremap_shrinks)
{
    KASSERT(enter_anonymous());
    KEXPECT_EQ(mm_mremap(stage.mm, PAGE(0), BYTES(PAGES), BYTES(1), 0, 0), BASE);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), -EFAULT);
}

TLB_VIEW(brk_shrinks)
{
    KASSERT(enter());
    stage.mm->brk_start = stage.mm->brk_end = BASE;
    KEXPECT_EQ(mm_brk(stage.mm, PAGE(4)), PAGE(4));
    KEXPECT_EQ(peer_poke(peer, PAGE(1)), 0);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), NEW);
    KEXPECT_EQ(mm_brk(stage.mm, PAGE(1)), PAGE(1));
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), -EFAULT);
}

/* ---- Replaced ---- */

TLB_VIEW(map_fixed_over_it)
{
    KASSERT(enter_anonymous());
    KEXPECT_EQ(mm_mmap(stage.mm, PAGE(1), BYTES(1), RW, ANON, NULL, 0), PAGE(1));
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), 0);
}

TLB_VIEW(dontneed)
{
    KASSERT(enter_anonymous());
    KEXPECT_EQ(mm_madvise(stage.mm, PAGE(1), BYTES(1), MADV_DONTNEED), 0);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), 0);
}

TLB_VIEW(first_write_over_the_zero_page)
{
    KASSERT(enter());
    KEXPECT_EQ(mm_mmap(stage.mm, BASE, BYTES(PAGES), RW, ANON, NULL, 0), BASE);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), 0);
    KEXPECT_EQ(user_poke(PAGE(1), NEW), 0);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), NEW);
}

TLB_VIEW(private_copy_of_a_file_page)
{
    KASSERT(enter_file(RW, MAP_PRIVATE));
    KEXPECT_EQ(user_poke(PAGE(1), NEW), 0);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), NEW);
}

/* All of two tables' area goes, tables included, and comes again in new frames. */
TLB_VIEW(page_tables_freed)
{
    const u64 bytes = 2 * PT_TABLE_SPAN;

    KASSERT(enter());
    KEXPECT_EQ(mm_mmap(stage.mm, BASE, bytes, RW, ANON, NULL, 0), BASE);
    KEXPECT_EQ(user_poke(BASE, OLD), 0);
    KEXPECT_EQ(user_poke(BASE + PT_TABLE_SPAN, OLD), 0);
    u64 tables = stage.mm->space.table_pages;
    KEXPECT_EQ(peer_peek(peer, BASE), OLD);
    KEXPECT_EQ(mm_munmap(stage.mm, BASE, bytes), 0);
    KEXPECT(stage.mm->space.table_pages <= tables - 2);
    KEXPECT_EQ(mm_mmap(stage.mm, BASE, bytes, RW, ANON, NULL, 0), BASE);
    KEXPECT_EQ(user_poke(BASE, NEW), 0);
    KEXPECT_EQ(peer_peek(peer, BASE), NEW);
}

/* ---- Copies ---- */

static int peek_in(struct mm *mm, u64 addr)
{
    test_mm_attach(mm);
    int byte = user_peek(addr);
    test_mm_attach(stage.mm);
    return byte;
}

/* The parent's writable translation on the other CPU must not outlive the fork. */
TLB_VIEW(store_after_a_fork_stays_the_parents)
{
    struct mm *child = NULL;

    KASSERT(enter_anonymous());
    KEXPECT_EQ(peer_poke(peer, PAGE(2)), 0);
    KEXPECT_EQ(user_poke(PAGE(2), OLD), 0);
    KASSERT_EQ(mm_fork(stage.mm, &child), 0);
    KEXPECT_EQ(peer_poke(peer, PAGE(2)), 0);
    KEXPECT_EQ(peek_in(child, PAGE(2)), OLD);
    KEXPECT_EQ(user_peek(PAGE(2)), NEW);
    mm_put(child);
}

TLB_VIEW(copy_on_write_by_another_thread)
{
    struct mm *child = NULL;

    KASSERT(enter_anonymous());
    KASSERT_EQ(mm_fork(stage.mm, &child), 0);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), OLD); /* of the page that the child has, too */
    KEXPECT_EQ(user_poke(PAGE(1), NEW), 0);
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), NEW);
    KEXPECT_EQ(peek_in(child, PAGE(1)), OLD);
    mm_put(child);
}

/* ---- The file changes ---- */

TLB_VIEW(truncated)
{
    KASSERT(enter_file(PROT_READ, MAP_SHARED));
    page_cache_truncate(&stage.file.cache, BYTES(1));
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), -EFAULT);
}

/* Read again: the peer's second look is a fault. */
static void expect_read_again(void)
{
    u64 pages_read = stage.file.pages_read;

    KEXPECT_EQ(peer_peek(peer, PAGE(1)), memory_file_byte(1));
    KEXPECT(stage.file.pages_read > pages_read);
}

TLB_VIEW(removed_from_the_cache)
{
    KASSERT(enter_file(PROT_READ, MAP_SHARED));
    rwsem_write_lock(&stage.file.cache.invalidate_lock);
    page_cache_remove_range(&stage.file.cache, 1, 1);
    rwsem_write_unlock(&stage.file.cache.invalidate_lock);
    expect_read_again();
}

TLB_VIEW(reclaimed)
{
    KASSERT(enter_file(PROT_READ, MAP_SHARED));
    for (unsigned round = 0; round < 8; round++) {
        struct page *page = page_cache_find(&stage.file.cache, 1);

        if (!page)
            break;
        reclaim_page(page);
    }
    expect_read_again();
}

/* The accessed bit is set by a walk, and there is none while the CPU remembers. */
TLB_VIEW(accessed_bit_cleared)
{
    KASSERT(enter_file(PROT_READ, MAP_SHARED));
    struct page *page = page_cache_find(&stage.file.cache, 1);

    KASSERT(page != NULL);
    page_lock(page);
    KEXPECT(page_test_clear_accessed(&stage.file.cache, page));
    KEXPECT_EQ(peer_peek(peer, PAGE(1)), memory_file_byte(1));
    KEXPECT(page_test_clear_accessed(&stage.file.cache, page));
    page_unlock(page);
    page_put(page);
}
