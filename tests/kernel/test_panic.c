/*
 * Crimes that end the machine, each for its report: tests/user/test_reports.py boots them one by one
 * (ktest=panic/NAME) and reads the fields. Never part of a run of all suites.
 */
#include "kernel/log/log.h"
#include "kernel/sched/mutex.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/threads.h"

/* Two callers, so that a report has a way to show. The empty asm keeps calls from becoming jumps. */
#define CULPRIT        static __attribute__((noinline)) void
#define NO_TAIL_CALL() __asm__ volatile("")

static SLEEP_LOCK_CLASS(evidence_class, "evidence");
static struct mutex evidence = MUTEX_INIT(evidence, &evidence_class);

static volatile u64 never = 1;

CULPRIT culprit_asserts(void)
{
    ASSERT(never == 0);
    NO_TAIL_CALL();
}

CULPRIT culprits_caller(void (*crime)(void))
{
    mutex_lock(&evidence);
    crime();
    mutex_unlock(&evidence);
}

KTEST_PANIC(assertion)
{
    culprits_caller(culprit_asserts);
    NO_TAIL_CALL();
}

/* ---- Exceptions ----------------------------------------------------------------------------- */

struct small_thing {
    u64 unused[3];
    u64 wanted; /* at 0x18 */
};

static struct small_thing *volatile missing_thing;

CULPRIT culprit_follows_null(void)
{
    missing_thing->wanted++;
    NO_TAIL_CALL();
}

KTEST_PANIC(null_pointer)
{
    culprits_caller(culprit_follows_null);
    NO_TAIL_CALL();
}

CULPRIT culprit_reads_nowhere(void)
{
    never = *(volatile u64 *)0xffffc0ffee000008ul;
    NO_TAIL_CALL();
}

static void run_in_thread(void *crime)
{
    culprits_caller((void (*)(void))crime);
    NO_TAIL_CALL();
}

/* A kernel thread of its own: whose says so, and that the test's waits for its end. */
KTEST_PANIC(oops_in_a_thread)
{
    struct test_threads threads = {0};

    threads_add(&threads, run_in_thread, culprit_reads_nowhere);
    threads_join(&threads);
}

static volatile u64 *volatile impossible = (volatile u64 *)0x1234567812345678ul;

CULPRIT culprit_reads_what_no_pointer_can_be(void)
{
    never = *impossible;
    NO_TAIL_CALL();
}

KTEST_PANIC(exception)
{
    culprits_caller(culprit_reads_what_no_pointer_can_be);
    NO_TAIL_CALL();
}

static __attribute__((noinline)) u64 recursion_without_end(u64 n)
{
    volatile u64 ballast[24];

    ballast[n % 24] = n;
    if (never == 0)
        return 0;
    return recursion_without_end(n + 1) + ballast[n % 24];
}

static void overflow(void *unused)
{
    (void)unused;
    never = recursion_without_end(0);
}

KTEST_PANIC(stack_overflow)
{
    struct test_threads threads = {0};

    threads_add(&threads, overflow, NULL);
    threads_join(&threads);
}

/* ---- Locks ---------------------------------------------------------------------------------- */

static SLEEP_LOCK_CLASS(left_class, "left hand");
static SLEEP_LOCK_CLASS(right_class, "right hand");
static struct mutex left_hand = MUTEX_INIT(left_hand, &left_class);
static struct mutex right_hand = MUTEX_INIT(right_hand, &right_class);

CULPRIT takes_right_then_left(void *unused)
{
    (void)unused;
    mutex_lock(&right_hand);
    mutex_lock(&left_hand);
    mutex_unlock(&left_hand);
    mutex_unlock(&right_hand);
}

CULPRIT takes_left_then_right(void)
{
    mutex_lock(&left_hand);
    mutex_lock(&right_hand);
    NO_TAIL_CALL();
}

/* One after the other, so that nobody waits: the order alone is the crime. */
KTEST_PANIC(lock_order)
{
    struct test_threads threads = {0};

    threads_add(&threads, takes_right_then_left, NULL);
    threads_join(&threads);
    culprits_caller(takes_left_then_right);
    NO_TAIL_CALL();
}

static SLEEP_LOCK_CLASS(fake_mmap_class, "mmap_lock");
static SLEEP_LOCK_CLASS(fake_vma_class, "vma->lock");
static struct mutex fake_mmap_lock = MUTEX_INIT(fake_mmap_lock, &fake_mmap_class);
static struct mutex fake_vma_lock = MUTEX_INIT(fake_vma_lock, &fake_vma_class);

/* Two that docs/locking.md has an order for, by name. */
KTEST_PANIC(lock_order_documented)
{
    mutex_lock(&fake_mmap_lock);
    mutex_lock(&fake_vma_lock);
    mutex_unlock(&fake_vma_lock);
    mutex_unlock(&fake_mmap_lock);
    mutex_lock(&fake_vma_lock);
    mutex_lock(&fake_mmap_lock);
}

static LOCK_CLASS(spinning_class, "spinning");
static struct spinlock spinning = SPINLOCK_INIT(&spinning_class);

KTEST_PANIC(sleep_with_a_spinlock)
{
    spin_lock(&spinning);
    mutex_lock(&left_hand);
}

/* ---- Freed memory --------------------------------------------------------------------------- */

struct ticket {
    u64 number;
    struct ticket *next;
};

static struct slab_cache *tickets;

static __attribute__((noinline)) struct ticket *sells_ticket(void)
{
    struct ticket *ticket = slab_alloc_zeroed(tickets);
    NO_TAIL_CALL();
    return ticket;
}

CULPRIT tears_ticket_up(struct ticket *ticket)
{
    slab_free(tickets, ticket);
    NO_TAIL_CALL();
}

CULPRIT finds_it_written_to(void)
{
    sells_ticket();
    NO_TAIL_CALL();
}

KTEST_PANIC(written_after_free)
{
    tickets = slab_cache_create("ticket", sizeof(struct ticket), 0);
    struct ticket *ticket = sells_ticket();

    tears_ticket_up(ticket);
    ticket->next = ticket;
    culprits_caller(finds_it_written_to);
    NO_TAIL_CALL();
}

static struct ticket *volatile stale;

CULPRIT follows_a_freed_pointer(void)
{
    never = stale->next->number;
    NO_TAIL_CALL();
}

/* The object is still free, and its poison is no address. */
KTEST_PANIC(read_after_free)
{
    tickets = slab_cache_create("ticket", sizeof(struct ticket), 0);
    stale = sells_ticket();
    tears_ticket_up(stale);
    culprits_caller(follows_a_freed_pointer);
    NO_TAIL_CALL();
}

CULPRIT tears_it_up_again(void)
{
    tears_ticket_up(stale);
    NO_TAIL_CALL();
}

KTEST_PANIC(freed_twice)
{
    tickets = slab_cache_create("ticket", sizeof(struct ticket), 0);
    stale = sells_ticket();
    tears_ticket_up(stale);
    culprits_caller(tears_it_up_again);
    NO_TAIL_CALL();
}

CULPRIT gives_frame_back(struct page *page)
{
    page_put(page);
    NO_TAIL_CALL();
}

/* An order that comes from no CPU's list: the same block is had again. */
KTEST_PANIC(frame_written_after_free)
{
    struct page *page = frames_alloc(3, 0);

    gives_frame_back(page);
    ((u8 *)page_virt(page))[5000] = 1;
    frames_alloc(3, 0);
}

/* ---- The end of all reports ----------------------------------------------------------------- */

/* No table of interrupts: the breakpoint, the fault that says so and the double fault find none. */
KTEST_PANIC(triple_fault)
{
    struct {
        u16 limit;
        u64 base;
    } PACKED nothing = {0, 0};

    __asm__ volatile("lidt %0; int3" ::"m"(nothing));
}
