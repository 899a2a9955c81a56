/*
 * Futexes between threads: who sleeps, who is woken, who moves. Nobody sleeps for a time: a thread is waited for until it
 * sleeps in its futex.
 */
#include "kernel/task/futex.h"

#include "kernel/cpu/clock.h"
#include "kernel/sched/wait.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define WORDS      0x300000000ul
#define OTHER_VIEW 0x310000000ul
#define RW         (PROT_READ | PROT_WRITE)

static struct futex_word word(unsigned n)
{
    return (struct futex_word){WORDS + n * 4, true};
}

static struct futex_word shared_word(u64 base, unsigned n)
{
    return (struct futex_word){base + n * 4, false};
}

struct sleeper {
    struct mm *mm;
    struct futex_word word;
    u32 value, bits;
    s64 result;
    bool is_over;
};

static void sleep_on(void *arg)
{
    struct sleeper *s = arg;
    test_mm_attach(s->mm);
    s->result = futex_wait(s->word, s->value, 0, s->bits);
    WRITE_ONCE(s->is_over, true);
    test_mm_attach(NULL);
}

/* Starts `n` sleepers, one after the other, each of them asleep before the next. */
static void start_sleepers(struct test_threads *threads, struct sleeper *s, unsigned n,
                           struct futex_word at)
{
    for (unsigned i = 0; i < n; i++) {
        s[i] = (struct sleeper){
            .mm = task_current()->mm, .word = at, .bits = s[i].bits ? s[i].bits : FUTEX_ANY_BITS};
        threads_add_and_wait_asleep(threads, sleep_on, &s[i]);
    }
}

static struct mm *enter_with_words(void)
{
    struct mm *mm = test_mm_enter();
    if (mm)
        KEXPECT_EQ(
            mm_mmap(mm, WORDS, PAGE_SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
            WORDS);
    return mm;
}

KTEST(futex, a_word_with_another_value_is_not_slept_on)
{
    KASSERT(enter_with_words() != NULL);
    KEXPECT_EQ(futex_wait(word(0), 1, 0, FUTEX_ANY_BITS), -EAGAIN);
    KEXPECT_EQ(futex_wait((struct futex_word){WORDS + 2, true}, 0, 0, FUTEX_ANY_BITS), -EINVAL);
    KEXPECT_EQ(futex_wait((struct futex_word){WORDS + PAGE_SIZE, true}, 0, 0, FUTEX_ANY_BITS),
               -EFAULT);
    KEXPECT_EQ(futex_wait((struct futex_word){WORDS + PAGE_SIZE, false}, 0, 0, FUTEX_ANY_BITS),
               -EFAULT);
    KEXPECT_EQ(futex_wait((struct futex_word){~3ul, true}, 0, 0, FUTEX_ANY_BITS), -EFAULT);
    KEXPECT_EQ(futex_wait(word(0), 0, 0, 0), -EINVAL);
    KEXPECT_EQ(futex_wait(word(0), 0, clock_ns() + 1000, FUTEX_ANY_BITS), -ETIMEDOUT);
    KEXPECT_EQ(futex_wake(word(0), 1, FUTEX_ANY_BITS), 0);
    test_mm_leave();
}

KTEST(futex, sleepers_are_woken_first_come_first_served)
{
    struct test_threads threads = {0};
    struct sleeper s[3] = {0};
    KASSERT(enter_with_words() != NULL);
    start_sleepers(&threads, s, 3, word(5));
    KEXPECT_EQ(futex_wake(word(6), 9, FUTEX_ANY_BITS), 0);
    KEXPECT_EQ(futex_wake(word(5), 1, FUTEX_ANY_BITS), 1);
    while (!READ_ONCE(s[0].is_over))
        sched_yield();
    KEXPECT(!READ_ONCE(s[1].is_over));
    KEXPECT_EQ(futex_wake(word(5), 9, FUTEX_ANY_BITS), 2);
    KEXPECT_EQ(threads_join(&threads), 0);
    for (unsigned i = 0; i < 3; i++)
        KEXPECT_EQ(s[i].result, 0);
    test_mm_leave();
}

KTEST(futex, bits_choose_the_sleepers)
{
    struct test_threads threads = {0};
    struct sleeper s[3] = {{.bits = 1}, {.bits = 2}, {.bits = 6}};
    KASSERT(enter_with_words() != NULL);
    start_sleepers(&threads, s, 3, word(0));
    KEXPECT_EQ(futex_wake(word(0), 9, 8), 0);
    KEXPECT_EQ(futex_wake(word(0), 9, 4), 1);
    KEXPECT_EQ(futex_wake(word(0), 9, 2), 1);
    KEXPECT_EQ(futex_wake(word(0), 9, FUTEX_ANY_BITS), 1);
    KEXPECT_EQ(threads_join(&threads), 0);
    test_mm_leave();
}

KTEST(futex, requeue_moves_those_it_does_not_wake)
{
    struct test_threads threads = {0};
    struct sleeper s[4] = {0};
    const u32 zero = 0, one = 1;
    KASSERT(enter_with_words() != NULL);
    start_sleepers(&threads, s, 4, word(0));
    KEXPECT_EQ(futex_requeue(word(0), word(9), 1, 9, &one), -EAGAIN);
    KEXPECT_EQ(futex_requeue(word(0), word(9), 1, 2, &zero), 3);
    KEXPECT_EQ(futex_wake(word(0), 9, FUTEX_ANY_BITS), 1);
    KEXPECT_EQ(futex_wake(word(9), 9, FUTEX_ANY_BITS), 2);
    KEXPECT_EQ(threads_join(&threads), 0);
    test_mm_leave();
}

KTEST(futex, more_than_a_batch_moves_between_words_of_a_file)
{
    enum { MANY = 40 };
    static struct sleeper s[MANY];
    struct test_threads threads = {0};
    struct memory_file file;
    memory_file_init(&file, 2, true, true);
    struct mm *mm = test_mm_enter();
    KASSERT(mm != NULL);
    KEXPECT_EQ(mm_mmap(mm, WORDS, 2 * PAGE_SIZE, RW, MAP_SHARED | MAP_FIXED, &file.file, 0), WORDS);
    KEXPECT_EQ(
        mm_mmap(mm, OTHER_VIEW, PAGE_SIZE, RW, MAP_SHARED | MAP_FIXED, &file.file, PAGE_SIZE),
        OTHER_VIEW);
    u32 value;
    KEXPECT_EQ(copy_from_user(&value, WORDS, sizeof(value)), 0);
    for (unsigned i = 0; i < MANY; i++) {
        s[i] = (struct sleeper){
            .mm = mm, .word = shared_word(WORDS, 0), .value = value, .bits = FUTEX_ANY_BITS};
        threads_add_and_wait_asleep(&threads, sleep_on, &s[i]);
    }
    KEXPECT_EQ(futex_requeue(shared_word(WORDS, 0), shared_word(OTHER_VIEW, 3), 2, 99, &value),
               MANY);
    KEXPECT_EQ(futex_wake(shared_word(WORDS, 0), 99, FUTEX_ANY_BITS), 0);
    KEXPECT_EQ(futex_wake(shared_word(WORDS + PAGE_SIZE, 3), 99, FUTEX_ANY_BITS), MANY - 2);
    KEXPECT_EQ(threads_join(&threads), 0);
    test_mm_leave();
    memory_file_destroy(&file);
}

KTEST(futex, a_signal_ends_the_sleep_and_leaves_no_sleeper_behind)
{
    struct test_threads threads = {0};
    struct sleeper s[2] = {0};
    KASSERT(enter_with_words() != NULL);
    start_sleepers(&threads, s, 2, word(0));
    task_kill(threads.tasks[0]);
    while (!READ_ONCE(s[0].is_over))
        sched_yield();
    KEXPECT_EQ(s[0].result, -EINTR);
    KEXPECT_EQ(futex_wake(word(0), 9, FUTEX_ANY_BITS), 1);
    KEXPECT_EQ(threads_join(&threads), 0);
    test_mm_leave();
}

/* FUTEX_WAKE_OP: operation, comparison, argument of each. */
struct waker {
    struct mm *mm;
    s64 result;
    bool is_over;
};

static void wake_while_being_killed(void *arg)
{
    struct waker *waker = arg;
    test_mm_attach(waker->mm);
    task_kill(task_current());
    waker->result = futex_wake(shared_word(WORDS, 1), 1, FUTEX_ANY_BITS);
    WRITE_ONCE(waker->is_over, true);
    test_mm_attach(NULL);
}

/* As at the end of a thread that holds a robust lock, when others of its process change the address space. */
KTEST(futex, a_killed_thread_wakes_although_it_must_wait_for_the_address_space)
{
    struct test_threads threads = {0};
    struct sleeper s[1] = {0};
    KASSERT(enter_with_words() != NULL);
    struct waker waker = {.mm = task_current()->mm};
    start_sleepers(&threads, s, 1, shared_word(WORDS, 1));
    rwsem_write_lock(&waker.mm->mmap_lock);
    const struct task *task = threads_add(&threads, wake_while_being_killed, &waker);
    while (task && !READ_ONCE(waker.is_over) && READ_ONCE(task->state) != TASK_SLEEPING)
        sched_yield();
    rwsem_write_unlock(&waker.mm->mmap_lock);
    while (task && !READ_ONCE(waker.is_over))
        sched_yield();
    KEXPECT_EQ(waker.result, 1);
    (void)futex_wake(shared_word(WORDS, 1), 1, FUTEX_ANY_BITS);
    KEXPECT_EQ(threads_join(&threads), 0);
    test_mm_leave();
}

static u32 code(u32 op, u32 cmp, u32 op_argument, u32 cmp_argument)
{
    return op << 28 | cmp << 24 | (op_argument & 0xfff) << 12 | (cmp_argument & 0xfff);
}

KTEST(futex, an_operation_changes_the_word_and_decides)
{
    u32 value;
    KASSERT(enter_with_words() != NULL);
    KEXPECT_EQ(futex_wake_op(word(0), word(1), 1, 1, code(0, 0, 7, 0)), 0); /* set 7, if it was 0 */
    KEXPECT_EQ(futex_wake_op(word(0), word(1), 1, 1, code(1, 2, 0xfff, 3)), 0); /* add -1 */
    KEXPECT_EQ(copy_from_user(&value, WORDS + 4, sizeof(value)), 0);
    KEXPECT_EQ(value, 6);
    KEXPECT_EQ(futex_wake_op(word(0), word(1), 1, 1, code(2 | 8, 0, 4, 0)), 0); /* or 1 << 4 */
    KEXPECT_EQ(copy_from_user(&value, WORDS + 4, sizeof(value)), 0);
    KEXPECT_EQ(value, 22);
    KEXPECT_EQ(futex_wake_op(word(0), word(1), 1, 1, code(7, 0, 0, 0)), -ENOSYS);
    test_mm_leave();
}

/* ---- Many at once: a word that is handed round ---- */

#define PLAYERS 4
#define TURNS   100

struct game {
    struct mm *mm;
    u32 next_player;
};

static void play(void *arg)
{
    struct game *game = arg;
    u32 me = atomic_add(&game->next_player, 1) - 1, turn;
    test_mm_attach(game->mm);
    for (unsigned i = 0; i < TURNS; i++) {
        for (;;) {
            if (copy_from_user(&turn, WORDS, sizeof(turn)))
                return;
            if (turn % PLAYERS == me)
                break;
            (void)futex_wait(word(0), turn, 0, FUTEX_ANY_BITS);
        }
        turn++;
        if (copy_to_user(WORDS, &turn, sizeof(turn)))
            return;
        (void)futex_wake(word(0), PLAYERS, FUTEX_ANY_BITS);
    }
    test_mm_attach(NULL);
}

KTEST(futex, no_wake_up_is_lost)
{
    struct test_threads threads = {0};
    u32 turn = 0;
    struct game game = {.mm = enter_with_words()};
    KASSERT(game.mm != NULL);
    for (unsigned i = 0; i < PLAYERS; i++)
        threads_add(&threads, play, &game);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(copy_from_user(&turn, WORDS, sizeof(turn)), 0);
    KEXPECT_EQ(turn, PLAYERS * TURNS);
    test_mm_leave();
}
