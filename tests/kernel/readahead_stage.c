/*
 * See readahead_stage.h.
 */
#include "tests/kernel/readahead_stage.h"

#include "lib/format.h"
#include "lib/string.h"
#include "mm/file_read.h"
#include "mm/knobs.h"
#include "mm/user_memory.h"

struct readahead_stage stage;

static u64 number_at(char **at)
{
    u64 value = 0;

    while (**at == ' ')
        (*at)++;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        value = value * 10 + (**at - '0');
    return value;
}

static void skip_words(char **at, unsigned n)
{
    while (n-- > 0) {
        while (**at == ' ')
            (*at)++;
        while (**at != ' ')
            (*at)++;
    }
}

/* Appends what has been logged since the last call. */
void stage_note_windows(pgoff_t touched)
{
    char line[READAHEAD_LOG_LINE + 1];

    for (bool first = true; readahead_log_read(stage.log_pos, line, READAHEAD_LOG_LINE) > 0;
         first = false) {
        char *at = line;

        line[READAHEAD_LOG_LINE] = '\0';
        stage.log_pos += READAHEAD_LOG_LINE;
        if (!KEXPECT(strstr(line, ":4242 ") != NULL))
            continue;
        skip_words(&at, 4);
        u64 start = number_at(&at), n = number_at(&at);
        if (first)
            format_append(stage.text, TEXT_BYTES, &stage.used, "%s@%lu:", stage.used ? " " : "",
                          touched);
        format_append(stage.text, TEXT_BYTES, &stage.used, "(%lu,%lu)%s", start, n,
                      at[1] == '-' ? "*" : "");
    }
}

void stage_forget_windows(void)
{
    stage.log_pos = readahead_log_end();
    stage.used = 0;
    stage.text[0] = '\0';
}

/* => whether the sequence since the last call is the expected one */
bool stage_expect(const char *expected)
{
    bool ok = KEXPECT_STREQ(stage.text, expected);

    stage_forget_windows();
    return ok;
}

/* window_kb: the device's knob. The test's thread works in the file's address space. => false:
 * skipped or failed */
bool stage_begin(u32 window_kb)
{
    if (!rig_init(&stage.rig, PAGES, PROT_READ, MAP_SHARED)) {
        ktest_skip("no 2 MiB of memory in one piece");
        return false;
    }
    knob_set("readahead", "ondemand");
    stage.read_ahead_kb = window_kb;
    stage.rig.file->cache.read_ahead_kb = &stage.read_ahead_kb;
    readahead_init(&stage.rig.file->mapped.readahead, &stage.rig.file->cache);
    test_mm_attach(stage.rig.mm);
    stage_forget_windows();
    return true;
}

void stage_end(void)
{
    test_mm_attach(NULL);
    rig_end(&stage.rig);
}

struct readahead *stage_readahead(void)
{
    return &stage.rig.file->mapped.readahead;
}

void stage_touch(pgoff_t page)
{
    u64 word = 0;

    KEXPECT_EQ(copy_from_user(&word, rig_addr(page), sizeof(word)), 0);
    KEXPECT_EQ(word, gated_file_word(page, 0));
    stage_note_windows(page);
}

void stage_touch_range(pgoff_t first, pgoff_t last)
{
    for (pgoff_t i = first; i <= last; i++)
        stage_touch(i);
}

void stage_read(pgoff_t page, u64 n_pages)
{
    KASSERT(n_pages <= BATCH);
    KEXPECT_EQ(
        file_read_kernel(&stage.rig.file->mapped, page * PAGE_SIZE, stage.buf, n_pages * PAGE_SIZE),
        n_pages * PAGE_SIZE);
    KEXPECT_EQ(*(u64 *)stage.buf, stage.rig.file->is_hole[page] ? 0 : gated_file_word(page, 0));
    stage_note_windows(page);
}

void stage_read_range(pgoff_t first, pgoff_t last)
{
    for (pgoff_t i = first; i <= last; i++)
        stage_read(i, 1);
}

/* Everything out of the page tables and out of the cache. */
void stage_forget_pages(void)
{
    KEXPECT_EQ(mm_madvise(stage.rig.mm, RIG_BASE, PAGES * PAGE_SIZE, MADV_DONTNEED), 0);
    page_cache_drop_range(&stage.rig.file->cache, 0, PAGES - 1);
    KEXPECT_EQ(stage.rig.file->cache.n_pages, 0);
}

void stage_cache_pages(pgoff_t first, pgoff_t last)
{
    struct page *page;

    for (pgoff_t i = first; i <= last; i++) {
        KASSERT_EQ(page_cache_get_page(&stage.rig.file->cache, i, false, &page), 0);
        page_put(page);
    }
}
