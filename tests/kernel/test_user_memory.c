/*
 * Copies between kernel and user memory: ranges, holes, strings, faults disabled.
 */
#include "kernel/sched/task.h"
#include "lib/string.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"

#define BASE     0x400000000ul
#define USER_END 0x00007ffffffff000ul
#define RW       (PROT_READ | PROT_WRITE)

static struct mm *enter_with_pages(unsigned pages)
{
    struct mm *mm = test_mm_enter();
    if (mm)
        KEXPECT_EQ(mm_mmap(mm, BASE, pages * PAGE_SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                           NULL, 0),
                   BASE);
    return mm;
}

KTEST(user_memory, bytes_come_back_across_a_page_border)
{
    u8 out[300], in[300];
    KASSERT(enter_with_pages(2) != NULL);
    for (unsigned i = 0; i < sizeof(out); i++)
        out[i] = (u8)(i * 3);
    KEXPECT_EQ(copy_to_user(BASE + PAGE_SIZE - 123, out, sizeof(out)), 0);
    KEXPECT_EQ(copy_from_user(in, BASE + PAGE_SIZE - 123, sizeof(in)), 0);
    KEXPECT_EQ(memcmp(in, out, sizeof(in)), 0);
    KEXPECT_EQ(clear_user(BASE + PAGE_SIZE - 100, 200), 0);
    KEXPECT_EQ(user_peek(BASE + PAGE_SIZE - 101), out[22]);
    KEXPECT_EQ(user_peek(BASE + PAGE_SIZE - 100), 0);
    KEXPECT_EQ(user_peek(BASE + PAGE_SIZE + 99), 0);
    KEXPECT_EQ(user_peek(BASE + PAGE_SIZE + 100), out[223]);
    test_mm_leave();
}

KTEST(user_memory, a_copy_across_a_hole_is_short_to_the_byte)
{
    static u8 buf[2 * PAGE_SIZE];
    KASSERT(enter_with_pages(1) != NULL);
    memset(buf, 0x5a, sizeof(buf));
    KEXPECT_EQ(copy_to_user_partial(BASE, buf, sizeof(buf)), PAGE_SIZE);
    KEXPECT_EQ(copy_to_user_partial(BASE + 5, buf, PAGE_SIZE), PAGE_SIZE - 5);
    KEXPECT_EQ(copy_to_user_partial(BASE + PAGE_SIZE - 3, buf, 8), 3);
    KEXPECT_EQ(copy_from_user_partial(buf, BASE + 1, sizeof(buf)), PAGE_SIZE - 1);
    KEXPECT_EQ(copy_from_user(buf, BASE + 1, PAGE_SIZE), -EFAULT);
    KEXPECT_EQ(copy_to_user(BASE + PAGE_SIZE, buf, 1), -EFAULT);
    KEXPECT_EQ(clear_user(BASE + 1, PAGE_SIZE), -EFAULT);
    test_mm_leave();
}

KTEST(user_memory, the_kernels_half_is_refused)
{
    static const char secret[16] = "kernel's own";
    char buf[16] = {0};
    KASSERT(enter_with_pages(1) != NULL);
    u64 faults = task_current()->faults.started;
    KEXPECT_EQ(copy_from_user(buf, (u64)secret, sizeof(buf)), -EFAULT);
    KEXPECT_EQ(copy_to_user((u64)buf, secret, sizeof(buf)), -EFAULT);
    KEXPECT_EQ(copy_from_user_partial(buf, (u64)secret, sizeof(buf)), 0);
    KEXPECT_EQ(copy_string_from_user(buf, (u64)secret, sizeof(buf)), -EFAULT);
    KEXPECT_EQ(copy_from_user(buf, USER_END - 8, 16), -EFAULT);
    KEXPECT_EQ(copy_from_user(buf, ~0ul - 3, 16), -EFAULT);
    KEXPECT_EQ(copy_from_user(buf, BASE, ~0ul), -EFAULT);
    KEXPECT_EQ(buf[0], 0);
    KEXPECT_EQ(task_current()->faults.started, faults);
    KEXPECT_EQ(copy_from_user(buf, USER_END, 0), 0);
    test_mm_leave();
}

KTEST(user_memory, strings_end_at_their_zero)
{
    char text[16];
    struct mm *mm = enter_with_pages(1);
    KASSERT(mm != NULL);
    u64 tail = BASE + PAGE_SIZE - 6;
    KEXPECT_EQ(copy_to_user(tail, "hello", 6), 0);
    KEXPECT_EQ(copy_string_from_user(text, tail, sizeof(text)), 5);
    KEXPECT_STREQ(text, "hello");
    KEXPECT_EQ(copy_string_from_user(text, tail, 6), 5);
    KEXPECT_EQ(copy_string_from_user(text, tail, 5), -ENAMETOOLONG);
    KEXPECT_EQ(copy_string_from_user(text, tail, 0), -ENAMETOOLONG);
    KEXPECT_EQ(user_poke(BASE + PAGE_SIZE - 1, '!'), 0); /* no zero before the hole */
    KEXPECT_EQ(copy_string_from_user(text, tail, sizeof(text)), -EFAULT);
    /* The last page of the user half: a string must not run on behind it. */
    KEXPECT_EQ(mm_mmap(mm, USER_END - PAGE_SIZE, PAGE_SIZE, RW,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
               USER_END - PAGE_SIZE);
    KEXPECT_EQ(copy_to_user(USER_END - 4, "abcd", 4), 0);
    KEXPECT_EQ(copy_string_from_user(text, USER_END - 4, sizeof(text)), -EFAULT);
    test_mm_leave();
}

KTEST(user_memory, with_faults_disabled_only_what_is_there_is_copied)
{
    u8 buf[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    KASSERT(enter_with_pages(2) != NULL);
    KEXPECT_EQ(user_poke(BASE, 1), 0);
    u64 faults = task_current()->faults.started;
    KEXPECT_EQ(copy_to_user_nofault(BASE + PAGE_SIZE - 4, buf, 8), 4);
    KEXPECT_EQ(copy_from_user_nofault(buf, BASE + PAGE_SIZE, 8), 0);
    KEXPECT_EQ(task_current()->faults.started, faults);
    KEXPECT_EQ(task_current()->pagefault_disabled, 0);
    KEXPECT_EQ(user_poke(BASE + PAGE_SIZE, 9), 0);
    KEXPECT_EQ(copy_from_user_nofault(buf, BASE + PAGE_SIZE - 4, 8), 8);
    KEXPECT_EQ(buf[0], 1);
    KEXPECT_EQ(buf[4], 9);
    test_mm_leave();
}

KTEST(user_memory, a_copy_faults_like_the_program_and_counts_once_a_page)
{
    static u8 zeros[4 * PAGE_SIZE];
    KASSERT(enter_with_pages(4) != NULL);
    struct task_fault_counters before = task_current()->faults;
    KEXPECT_EQ(copy_to_user(BASE, zeros, sizeof(zeros)), 0);
    const struct task_fault_counters *now = &task_current()->faults;
    KEXPECT_EQ(now->minor - before.minor, 4);
    KEXPECT_EQ(now->major - before.major, 0);
    KEXPECT_EQ(now->started - before.started, 4);
    KEXPECT_EQ(user_poke(BASE + 4 * PAGE_SIZE, 1), -EFAULT);
    KEXPECT_EQ(now->sigsegv - before.sigsegv, 1);
    test_mm_leave();
}
