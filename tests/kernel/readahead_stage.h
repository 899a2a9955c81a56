/*
 * A stage for readahead tests: a gated file of 512 pages, mapped; touches and reads of its pages, and the windows that they
 * make the disk be asked for.
 *
 * A sequence is written as FAULTS.md section 4 writes it: "@a:(s,n)" where touching page a made the disk be asked for n pages
 * from page s; "*" behind it: without a mark.
 */
#ifndef TESTS_KERNEL_READAHEAD_STAGE_H
#define TESTS_KERNEL_READAHEAD_STAGE_H

#include "tests/kernel/fault_rig.h"
#include "tests/kernel/test_mm.h"

#define PAGES      GATED_FILE_MAX_PAGES
#define TEXT_BYTES 1024
#define MAX_PAGES  32
#define BATCH      31 /* pages that read() looks at together */

struct readahead_stage {
    struct fault_rig rig;
    u32 read_ahead_kb;
    u64 log_pos;
    char text[TEXT_BYTES];
    size_t used;
    char buf[BATCH * PAGE_SIZE];
};

extern struct readahead_stage stage;

/* window_kb: the device's knob; policy: `ondemand`. The test's thread works in the file's address space. => false: skipped */
bool stage_begin(u32 window_kb);
void stage_end(void);
struct readahead *stage_readahead(void);

void stage_touch(pgoff_t page);
void stage_touch_range(pgoff_t first, pgoff_t last);
void stage_read(pgoff_t page, u64 n_pages);         /* at most BATCH */
void stage_read_range(pgoff_t first, pgoff_t last); /* a page at a time */

/* Everything out of the page tables and out of the cache. */
void stage_forget_pages(void);
/* Reads these pages in, without readahead. */
void stage_cache_pages(pgoff_t first, pgoff_t last);

void stage_note_windows(pgoff_t touched); /* appends what has been logged since the last call */
void stage_forget_windows(void);
bool stage_expect(
    const char *expected); /* => whether the sequence since the last call is this one */

#endif
