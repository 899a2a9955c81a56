/*
 * Readahead, the mechanism: the doors for faults and reads, the table of policies, and the submission of a window.
 *
 * A window asked for is not a request: pages that are cached already are skipped, pages behind the end of the file do not exist,
 * holes are filled with zeros. What remains are runs of pages that the disk is really asked for; each run is one line of the log
 * and one window in the counters, however the file's layout splits it into disk requests afterwards.
 */
#include "mm/readahead.h"

#include "kernel/sync/counter.h"
#include "kernel/sync/mutant.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/account.h"
#include "mm/core/slab.h"
#include "mm/mapped_file.h"
#include "mm/readahead_log.h"
#include "mm/readahead_policy.h"
#include "mm/readahead_use.h"

#define RUN_ON_STACK_PAGES    64
#define DEFAULT_READ_AHEAD_KB 128
#define KB_PER_PAGE           4

static LOCK_CLASS(readahead_lock_class, "readahead");

static const struct readahead_policy *const policies[] = {
    &readahead_ondemand,
    &readahead_stream,
    &readahead_around,
    &readahead_none,
};
static const struct readahead_policy *policy = &readahead_ondemand;

int readahead_set_policy(const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(policies); i++) {
        if (strcmp(policies[i]->name, name) == 0) {
            WRITE_ONCE(policy, policies[i]);
            return 0;
        }
    }
    return -EINVAL;
}

const char *readahead_policy_name(void)
{
    return READ_ONCE(policy)->name;
}

void readahead_init(struct readahead *ra, const struct page_cache *cache)
{
    *ra =
        (struct readahead){.prev_bytes = READAHEAD_NONE_YET, .max_pages = readahead_window(cache)};
    spin_init(&ra->lock, &readahead_lock_class);
}

void readahead_end(struct readahead *ra)
{
    kfree(ra->state);
    ra->state = NULL;
}

void *readahead_lock_state(struct readahead *ra, const struct readahead_policy *owner)
{
    spin_lock(&ra->lock);
    if (ra->state_of != owner) {
        kfree(ra->state);
        ra->state = NULL;
        ra->state_of = owner;
    }
    if (!ra->state)
        ra->state = kzalloc(owner->state_bytes);
    return ra->state;
}

u32 readahead_window(const struct page_cache *cache)
{
    u32 kb =
        cache && cache->read_ahead_kb ? READ_ONCE(*cache->read_ahead_kb) : DEFAULT_READ_AHEAD_KB;
    return kb / KB_PER_PAGE;
}

/* Whatever the policy did, the page that was missed must have been asked for. */
static void ensure_index(struct readahead_call *call)
{
    struct page *page = page_cache_find(call->file->cache, call->index);
    if (page)
        page_put(page);
    else if (!call->error)
        readahead_submit(call, call->index, 1, READAHEAD_NO_MARK);
}

void readahead_on_fault_miss(struct readahead_call *call)
{
    READ_ONCE(policy)->fault_miss(call);
    ensure_index(call);
}

void readahead_on_fault_mark(struct readahead_call *call)
{
    READ_ONCE(policy)->fault_mark(call);
}

void readahead_on_fault_hit(struct mapped_file *file)
{
    void (*fault_hit)(struct readahead *) = READ_ONCE(policy)->fault_hit;
    if (fault_hit)
        fault_hit(&file->readahead);
}

void readahead_on_read_miss(struct readahead_call *call)
{
    READ_ONCE(policy)->read_miss(call);
    ensure_index(call);
}

void readahead_on_read_mark(struct readahead_call *call)
{
    READ_ONCE(policy)->read_mark(call);
}

void readahead_advise_willneed(struct mapped_file *file, pgoff_t first, u64 n_pages)
{
    if (page_cache_is_memory(file->cache))
        return; /* nothing to read, and a hole stays one */
    struct readahead_call call = {.file = file,
                                  .kind = READAHEAD_ADVICE,
                                  .index = first,
                                  .wanted_pages = n_pages,
                                  .access = first};
    void (*willneed)(struct readahead_call *) = READ_ONCE(policy)->willneed;
    u64 limit = MAX(file->cache->max_request_pages, file->readahead.max_pages);
    if (willneed)
        willneed(&call);
    else
        readahead_submit(&call, first, MIN(n_pages, limit), READAHEAD_NO_MARK);
}

static bool is_wanted(const struct readahead_call *call, pgoff_t index)
{
    return index - call->index < call->wanted_pages;
}

/* A stretch without holes: one window. */
static void count_window(struct readahead_call *call, pgoff_t start, u64 n_pages, pgoff_t mark)
{
    pgoff_t wanted_start = MAX(start, call->index);
    pgoff_t wanted_end = MIN(start + n_pages, call->index + call->wanted_pages);
    u64 wanted = wanted_end > wanted_start ? wanted_end - wanted_start : 0;

    readahead_log_add(call, start, n_pages, mark);
    readahead_count_ahead(n_pages - wanted);
    if (call->kind == READAHEAD_FAULT)
        account_fault_read(n_pages);
}

/* What of the run was read from disk: each stretch between holes is a window. */
static void count_run(struct readahead_call *call, struct page **pages, unsigned n, pgoff_t mark)
{
    unsigned i = 0;
    while (i < n) {
        unsigned begin = i;
        while (i < n && !page_has(pages[i], PAGE_HOLE))
            i++;
        if (i > begin)
            count_window(call, pages[begin]->index, i - begin, mark);
        else
            page_unset(pages[i++], PAGE_AHEAD);
    }
}

/*
 * Inserts absent pages from `index` on, up to `end`, until one is present, the array is full, or frames run out.
 * => number inserted
 */
static unsigned insert_run(struct readahead_call *call, pgoff_t index, pgoff_t end, pgoff_t mark,
                           struct page **pages, unsigned max)
{
    unsigned n = 0;
    for (; index < end && n < max; index++, n++) {
        int error = page_cache_add_new(call->file->cache, index, &pages[n]);
        if (error == -ENOMEM && index == call->index)
            call->error = error;
        if (error)
            break;
        if (index == mark)
            page_set(pages[n], PAGE_READAHEAD);
        if (!is_wanted(call, index))
            page_set(pages[n], PAGE_AHEAD);
        if (index == call->index)
            call->started = true;
    }
    return n;
}

/* The absent pages of [start, end), run by run. invalidate_lock held shared. */
static u64 submit_runs(struct readahead_call *call, pgoff_t start, pgoff_t end, pgoff_t mark,
                       struct page **pages, unsigned max)
{
    struct page_cache *cache = call->file->cache;
    u64 inserted = 0;
    while (start < end && (start = page_cache_next_absent(cache, start, end - 1)) < end) {
        unsigned n = insert_run(call, start, end, mark, pages, max);
        if (n == 0) {
            struct page *other = page_cache_find(cache, start);
            if (!other)
                break;       /* out of frames */
            page_put(other); /* somebody else was first; go on behind it */
            start++;
            continue;
        }
        cache->ops->read_pages(cache, pages, n, call->kind != READAHEAD_FAULT);
        count_run(call, pages, n, mark);
        for (unsigned i = 0; i < n; i++) {
            if (call->keeps_page && pages[i]->index == call->index && !call->page)
                call->page = pages[i];
            else
                page_put(pages[i]);
        }
        start += n;
        inserted += n;
    }
    return inserted;
}

u64 readahead_submit(struct readahead_call *call, pgoff_t start, u64 size, pgoff_t mark)
{
    struct page_cache *cache = call->file->cache;
    struct page *few[RUN_ON_STACK_PAGES], **pages = few;
    u64 max = MIN(size, (u64)cache->max_request_pages), inserted = 0;

    if (max > RUN_ON_STACK_PAGES)
        pages = kmalloc(max * sizeof(*pages));
    if (!pages || max <= RUN_ON_STACK_PAGES) {
        pages = few;
        max = RUN_ON_STACK_PAGES;
    }
    /* A truncation may hold it while it waits for the disk. */
    if (rwsem_read_lock_killable(&cache->invalidate_lock)) {
        call->error = -EINTR;
    } else {
        pgoff_t file_end =
            MAX(page_cache_size_pages(cache), MUTANT(no_size_recheck) * (call->index + 1));
        if (start < file_end)
            inserted =
                submit_runs(call, start, MIN(file_end - start, size) + start, mark, pages, max);
        rwsem_read_unlock(&cache->invalidate_lock);
    }
    if (pages != few)
        kfree(pages);
    return inserted;
}
