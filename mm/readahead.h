/*
 * Readahead: what to ask the disk for, and when. Policy (which pages) is apart from mechanism (how pages get filled).
 *
 *         |<----------- size ----------->|
 *      start          mark (start + size - async)
 *      |--------------|#=================|
 *                      ^ page with PAGE_READAHEAD: touching it starts the next window, while the reader
 *                        still has `async` pages to go
 *
 * Callers hold no page lock, and no lock of an address space unless the fault_retry policy keeps it (hold).
 */
#ifndef MM_READAHEAD_H
#define MM_READAHEAD_H

#include "kernel/sync/spin.h"

struct mapped_file;
struct page;
struct page_cache;

#define READAHEAD_NONE_YET (-1)

/* One per open file; FAULTS.md section 4. */
struct readahead {
    struct spinlock
        lock; /* the rest; held while a window is computed, never while it is submitted */
    pgoff_t start;
    u32 size, async; /* pages */
    s64 prev_bytes;  /* position after the last read(); READAHEAD_NONE_YET before the first */
    u32 miss;        /* read-around's score */
    u32 max_pages;   /* the window, taken at open; doubled by POSIX_FADV_SEQUENTIAL */
    bool advised_random, advised_sequential; /* of the descriptor */
    u64 windows, window_pages; /* read from the disk for this open file, since it was opened */
    void *state;               /* of the policy that has needed one; readahead_lock_state() */
    const struct readahead_policy *state_of;
};

enum readahead_kind { READAHEAD_FAULT, READAHEAD_READ, READAHEAD_ADVICE };

/* One question to the policy. */
struct readahead_call {
    struct mapped_file *file;
    enum readahead_kind kind;
    pgoff_t index;                     /* the page missed, or the page that carried the mark */
    u64 wanted_pages;                  /* n: pages the call still wants from index on (faults: 1) */
    pgoff_t access;                    /* page that the access began with, for the log */
    bool hint_random, hint_sequential; /* MADV_ of the VMA (faults) */
    const char *
        pattern; /* what the policy takes the access for, in one word, for the trace; NULL: none of its own */
    bool keeps_page; /* the caller wants `page` */
    /* Filled in by readahead_submit(): */
    bool started; /* page `index` was inserted, and its read asked for, by this call */
    struct page
        *page; /* it, with a reference for the caller: nobody may drop it before it was looked at */
    int error; /* -ENOMEM: page `index` could not be inserted; -EINTR: a fatal signal, nothing was */
};

/* A policy: one file mm/readahead_<name>.c, one line in the table of mm/readahead.c. All may sleep. */
struct readahead_policy {
    const char *name;
    size_t state_bytes; /* of its own state for each open file; 0: struct readahead is enough */
    void (*fault_miss)(
        struct readahead_call *call); /* page absent: must at least read call->index */
    void (*fault_mark)(
        struct readahead_call *call); /* first attempt found the mark (already cleared) */
    void (*read_miss)(struct readahead_call *call);
    void (*read_mark)(struct readahead_call *call);
    /* Optional: the first attempt found the page unlocked and up to date. */
    void (*fault_hit)(struct readahead *ra);
    /* Optional: WILLNEED for [index, index + wanted_pages). Without it one request as large as the device takes. */
    void (*willneed)(struct readahead_call *call);
};

void readahead_init(struct readahead *ra, const struct page_cache *cache); /* at open */
void readahead_end(struct readahead *ra); /* at close: nobody uses the file any more */

/*
 * For policies: takes ra->lock. => the policy's own state for this open file (zeros when new; another policy's is dropped),
 * to be used until the lock is released; NULL when out of memory, with the lock held all the same.
 */
void *readahead_lock_state(struct readahead *ra, const struct readahead_policy *policy);

u32 readahead_window(const struct page_cache *cache); /* pages, by the device's knob now */

/* The doors for faults and reads; each asks the policy chosen by vm.readahead. */
void readahead_on_fault_miss(struct readahead_call *call);
void readahead_on_fault_mark(struct readahead_call *call);
void readahead_on_fault_hit(struct mapped_file *file);
void readahead_on_read_miss(struct readahead_call *call);
void readahead_on_read_mark(struct readahead_call *call);

/* Hints. POSIX_FADV_* of FAULTS.md; range in pages. */
void readahead_advise_willneed(struct mapped_file *file, pgoff_t first, u64 n_pages);

/*
 * For policies: reads the absent pages of [start, start + size), clipped at the end of the file; skips cached ones; puts the mark on page
 * `mark` if that page is newly added (READAHEAD_NO_MARK: none). One log line and one ra_windows count for each run of pages really read from disk.
 * Takes invalidate_lock shared (killable); may sleep for frames and metadata. => pages newly inserted
 */
#define READAHEAD_NO_MARK (~0ul)
u64 readahead_submit(struct readahead_call *call, pgoff_t start, u64 size, pgoff_t mark);

/* The knob vm.readahead. */
int readahead_set_policy(const char *name); /* => 0 or -EINVAL */
const char *readahead_policy_name(void);

/*
 * The log behind /proc/readahead_log: fixed lines of READAHEAD_LOG_LINE bytes "SEQ DEV:INO KIND ACCESS START N MARK", space padded, newline last.
 * Copies up to len bytes from byte position pos. => bytes; 0 at the end. An overwritten record reads as "lost".
 */
#define READAHEAD_LOG_LINE 64
size_t readahead_log_read(u64 pos, char *buf, size_t len);
u64 readahead_log_end(void); /* bytes written so far */

#endif
