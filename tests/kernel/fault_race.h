/*
 * A race about one file page, in a fixed order: a fault waits for the page's read, which the I/O gate holds; somebody else changes
 * something; the disk delivers. A race is a row of a table: who changes what, whom he waits for, and how the fault ends.
 */
#ifndef TESTS_KERNEL_FAULT_RACE_H
#define TESTS_KERNEL_FAULT_RACE_H

#include "tests/kernel/fault_rig.h"

#define RACE_PAGES  16
#define RACE_PAGE   5
#define RACE_CACHED 9 /* in the cache from the beginning */

enum race_change {
    /* Of the area: with fault_retry=hold he waits for the fault and its disk, else for nobody. Where the lock is let go before
     * the disk is asked, he comes once more at that moment. */
    RACE_OF_AREA,
    /* Of the page: he waits for its lock, under every policy, and has it before the fault. */
    RACE_OF_PAGE,
};

struct race_end {
    enum fault_result result;
    u64 value; /* read, where the fault ended well */
    bool is_major;
};

struct race {
    void (*act)(struct actor *actor);
    u64 argument;
    enum race_change change;
    u32 asks;   /* how often the fault finds its page absent, and asks for it */
    u32 reads;  /* for how many of these the disk is needed, and slept for */
    u32 misses; /* restarts that find the awaited page gone, where the lock was let go */
    struct race_end end;
};

/* Under the policy of the rig, which is put up and taken down. */
void race_run(const struct race *race);

/* The same in steps, for races of another shape. begin: a reader of RACE_PAGE whose read is held by the gate. */
bool race_begin(struct fault_rig *rig, struct actor *reader);
/* The disk delivers; the reader has woken, and goes no further. */
void race_deliver(struct fault_rig *rig, struct actor *reader);
/* To its end, through as many more reads of the page as the race has. */
void race_go_on(const struct race *race, struct fault_rig *rig, struct actor *reader);
/* How the fault ended, and that it is one fault, with as many retries and waits under a lock as the policy says. */
void race_expect(const struct race *race, const struct fault_rig *rig, const struct actor *reader);

/* What was there afterwards: not where the area goes as soon as the fault has ended. */
void race_expect_bytes(const struct race *race, const struct actor *reader);

/* Acts. fault: reads addr by fault_user(); result is an enum fault_result. */
void act_fault(struct actor *actor);
void act_protect(struct actor *actor);       /* takes all protection of the mapping away */
void act_map_anonymous(struct actor *actor); /* over RACE_PAGE */
void act_map_file_page(struct actor *actor); /* page `argument`, over RACE_PAGE */
void act_truncate_and_back(
    struct actor *actor);              /* the file to `argument` bytes, and to its size again */
void act_read_in(struct actor *actor); /* brings page `argument` into the cache, as read(2) */

#define FAULT_RACE(name_, ...)                             \
    static const struct race race_##name_ = {__VA_ARGS__}; \
    FAULT_TEST_OF_EACH_COMBINATION(fault_races, name_)     \
    {                                                      \
        race_run(&race_##name_);                           \
    }

#endif
