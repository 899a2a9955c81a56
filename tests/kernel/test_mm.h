/*
 * An address space for a test to work in, and files in memory to map there.
 *
 * Between enter and leave the test's thread runs in the space as a program would: copy_to_user and the like fault
 * pages in, and the thread's fault counters count them.
 */
#ifndef TESTS_KERNEL_TEST_MM_H
#define TESTS_KERNEL_TEST_MM_H

#include "mm/mmap.h"

/* A new space, attached to the current task. NULL (a failed expectation) when out of memory. */
struct mm *test_mm_enter(void);
/* Checks the space, detaches and ends it. */
void test_mm_leave(void);
/* Attaches the current task to an existing space (NULL: to none); takes no reference. */
void test_mm_attach(struct mm *mm);

/*
 * A file whose page i begins with the byte memory_file_byte(i) and is filled with it; reading it takes no time. The page
 * at `bad_index` cannot be read.
 */
struct memory_file {
    struct page_cache cache;
    struct mapped_file file;
    u64 pages_read;
    u64 bad_index;
    u32 releases; /* how often the last reference went */
};

static inline u8 memory_file_byte(u64 index)
{
    return (u8)(index * 7 + 1);
}

/* One reference, the caller's. */
void memory_file_init(struct memory_file *f, u64 pages, bool can_read, bool can_write);
/* Drops the caller's reference and all pages; nobody maps it any more. */
void memory_file_destroy(struct memory_file *f);

/* One byte of the program's memory. => the byte, or -EFAULT */
int user_peek(u64 addr);
int user_poke(u64 addr, u8 byte); /* => 0 or -EFAULT */

/*
 * The areas of [base, base + pages) as the oracle writes them: "[0,4)rw-p0 [4,6)r--s+f2", in pages from base; "+f" is a
 * file's page at the start, "0" is anonymous memory.
 */
void test_mm_render(struct mm *mm, u64 base, u64 pages, char *buf, size_t size);

/* Frames free now, with everything given back that is only kept for reuse. */
u64 test_frames_settled(void);

#endif
