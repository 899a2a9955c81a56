/*
 * vm.readahead=stream: each open file has a table of streams, found by where an access lands, instead of one state.
 *
 *     an access lands at page p, n pages wanted
 *       inside what an access has asked for already      the rest of that access, nothing more
 *       inside a stream's window, but gone again         dropped before use: the stream's windows halve
 *       where a stream expects its next access           a step: read ahead of it
 *       anywhere else                                    a new stream; a guess ahead, while guesses pay
 *
 *     a stream, forward, at the moment when its mark is met:
 *
 *                 first..last             edge
 *       . . x x x [M = = = = = = = = = = ]             the reader is at M; the window behind it is in the cache
 *                                         [M = = = = ]  asked for now; windows grow with every mark that is met
 *
 *     stride     +1, -1         dense: windows side by side, in the direction of travel
 *                to half max    dense too, with the mark on a page that will be touched
 *                more           sparse: those pages alone, each with the mark, a few accesses ahead
 *
 * A guess is what a reader in the middle of a file gets at his first access. It saves a stream's second wait, and is waste where
 * access is random: each costs a point of trust, and a stream that shows itself gives some back. Without trust nothing is read
 * ahead before the third access in order, since two side by side, or three at equal distances, happen among random ones, too.
 *
 * A reader who meets two marks in a row before their pages have come is faster than the disk, and waits for each window: his may
 * be twice as large.
 */
#include "mm/mapped_file.h"
#include "mm/readahead_policy.h"

#define STREAMS          64
#define GUESS_PAGES      4
#define TRUST_START      8
#define TRUST_MAX        16
#define TRUST_FOR_STREAM 2
#define STRIDE_MAX       4096 /* pages; accesses farther apart are strangers */
#define GROWTH           4
#define CAP_MIN          2
#define SPARSE_MAX       2  /* accesses ahead: what a stream that ends leaves unused */
#define STEPS_TRUSTED    3  /* so many are no coincidence */
#define STEPS_SURE       16 /* so many accesses at equal distances are no beginnings of streams */
#define SLOW_MARKS       2
#define HISTORY          8 /* so many cached pages right before a miss were read in order */
#define GRAIN            8 /* pages between touches, at most, of one who skips some */
#define NO_PAGE          (-1l)
#define NO_CAP           (~0u)

/* Pages are signed here: a backward stream's edge passes page 0. */
struct stream {
    s64 first, last; /* the latest access known */
    s64 stride;      /* from access to access; 0: there was one only */
    s64 edge;        /* next page to ask for, in the direction of travel */
    s64 mark;        /* the page that carries it, or NO_PAGE */
    u32 size;        /* pages of the last window; sparse: accesses ahead */
    u32 cap;         /* of the largest window, while memory is short */
    u32 steps;       /* accesses that came where they were expected */
    u32 slow_marks;  /* in a row, met before their page had come */
    u32 grain;       /* a mark lies a multiple of this from the latest access */
    u64 stamp;       /* of the latest event; 0: free */
};

struct streams {
    struct stream table[STREAMS];
    u64 clock; /* 0: new */
    u32 trust;
};

/* An access, seen from the page that was missed or carried the mark. */
struct access {
    s64 first, last; /* all of it */
    s64 page, n;     /* this page, and what is wanted from here on */
    u32 max;         /* the window's knob */
    u32 limit;       /* how large a window may be for it: more, where the access itself is larger */
    bool is_read, is_sequential, is_random;
    bool may_guess; /* there is trust */
    s64 before;     /* cached pages right before this one, at most a window */
    /* Where a mark was met: */
    s64 absent;   /* the first page behind it that is not cached, at most a window on */
    bool is_slow; /* its page is still to come */
};

/* What to ask for: the access's own pages first, then `count` windows, `step` apart. */
struct plan {
    s64 own_pages;
    s64 start, size, step;
    u32 count;
    s64 mark; /* NO_PAGE: none. Sparse: each window's own page */
    bool is_sparse;
    const char *pattern; /* for the trace */
};

/* ---- One stream ---- */

static s64 distance(s64 a, s64 b)
{
    return a > b ? a - b : b - a;
}

static s64 direction(const struct stream *s)
{
    return s->stride < 0 ? -1 : 1;
}

static bool is_sparse(const struct stream *s, const struct access *a)
{
    return distance(s->stride, 0) > 1 && distance(s->stride, 0) * 2 > a->max;
}

/* The first page at `page` or beyond it, in the direction of travel, that the stream will touch. */
static s64 next_touch(const struct stream *s, s64 page)
{
    s64 from = s->stride > 0 ? MAX(s->last + 1 - s->stride, s->first) : s->first;
    s64 reach = s->stride > 0 ? page - from : from - page, step = distance(s->stride, 0);
    s64 steps = reach > 0 ? (reach + step - 1) / step : 1;
    return from + MAX(steps, 1l) * s->stride;
}

/* Asked for, and not accessed yet as far as is known. */
static s64 has_asked_for(const struct stream *s, const struct access *a)
{
    bool is_inside = s->edge > s->last ? a->page > s->last && a->page < s->edge
                                       : a->page < s->first && a->page > s->edge;
    return is_inside && (!is_sparse(s, a) || (a->page - s->first) % s->stride == 0);
}

/* A little beyond the window, from a stream that skips pages now and then. */
static bool is_just_beyond(const struct stream *s, const struct access *a)
{
    return s->stride >= 0 ? a->page >= s->edge && a->page < s->edge + s->size
                          : a->page <= s->edge && a->page > s->edge - (s64)s->size;
}

/* The access lies right behind the latest, or right before it: 1, -1; 0: neither, or the stream is known to be another. */
static s64 stride_beside(const struct stream *s, const struct access *a)
{
    s64 stride = a->first == s->last + 1 ? 1 : a->last == s->first - 1 ? -1 : 0;
    return s->steps == 0 || s->stride == stride ? stride : 0;
}

/* The stride with which the access continues the stream; 0: it does not. */
static s64 stride_to(const struct stream *s, const struct access *a)
{
    bool is_proven = s->steps > 0;
    if (stride_beside(s, a))
        return stride_beside(s, a);
    if (s->stride && a->first == s->first + s->stride)
        return s->stride;
    if (is_proven && a->page == next_touch(s, s->edge))
        return s->stride;
    if ((is_proven || a->may_guess) && !is_sparse(s, a) && is_just_beyond(s, a))
        return direction(s);
    return 0;
}

static void note_access(struct stream *s, const struct access *a)
{
    s->first = a->first;
    s->last = a->last;
}

/* The next window, from the edge on, with the mark at the first touch at `mark_from` or beyond. */
static void extend_dense(struct stream *s, struct plan *plan, s64 mark_from)
{
    plan->count = 1;
    plan->size = s->size;
    if (s->stride > 0) {
        plan->start = s->edge;
        s->edge += s->size;
    } else {
        plan->start = MAX(s->edge - (s64)s->size + 1, 0l);
        plan->size = s->edge - plan->start + 1;
        s->edge = plan->start - 1;
    }
    s64 at = next_touch(s, mark_from);
    while ((at - s->first) % (s64)s->grain)
        at += direction(s);
    s->mark = at >= plan->start && at < plan->start + plan->size ? at : NO_PAGE;
    plan->mark = s->mark;
}

/* The pages of the next `size` accesses, those that have not been asked for. */
static void extend_sparse(struct stream *s, struct plan *plan)
{
    s64 start = next_touch(s, s->edge), end = s->first + ((s64)s->size + 1) * s->stride;
    plan->is_sparse = true;
    plan->start = start;
    plan->size = 1;
    plan->step = s->stride;
    plan->count = start == end || (start > end) == (s->stride > 0) ? 0 : (end - start) / s->stride;
    if (plan->count)
        s->edge = end;
    s->mark = NO_PAGE;
}

static void grow(struct stream *s, const struct access *a)
{
    bool is_slow = s->slow_marks >= SLOW_MARKS && !a->is_sequential; /* that has its own */
    u32 limit = MIN(s->cap, is_slow ? MAX(a->limit, 2 * a->max) : a->limit);
    bool is_doubtful = s->steps < STEPS_TRUSTED && !a->may_guess; /* it may be a coincidence */
    if (is_sparse(s, a))
        s->size = is_doubtful ? s->steps - 1 : MIN(MAX(s->size, 1u) * 2, SPARSE_MAX);
    else if (is_doubtful)
        s->size = MIN(a->n + (s->steps - 1) * (GUESS_PAGES - 1), (s64)limit);
    else
        s->size = MIN(MAX(s->size, 2u) * GROWTH, limit);
}

/* ---- The table ---- */

/* => not 0: the access fits the stream */
typedef s64 (*stream_fits)(const struct stream *s, const struct access *a);

/* Where several fit, the latest. */
static struct stream *find(struct streams *t, const struct access *a, stream_fits fits)
{
    struct stream *best = NULL;
    for (struct stream *s = t->table; s < t->table + STREAMS; s++)
        if (s->stamp && (!best || s->stamp > best->stamp) && fits(s, a))
            best = s;
    return best;
}

static s64 has_noted(const struct stream *s, const struct access *a)
{
    return s->first == a->first && s->last == a->last;
}

static s64 has_marked(const struct stream *s, const struct access *a)
{
    return s->mark == a->page;
}

/* Beside an access is rather that one's next than one of a wide stride, or of a window that was asked for. */
static struct stream *find_any(struct streams *t, const struct access *a)
{
    struct stream *s = find(t, a, stride_beside);
    if (!s)
        s = find(t, a, has_asked_for);
    return s ? s : find(t, a, stride_to);
}

/* From the nearest stream's latest access to this one; 0: none is near. */
static s64 stride_from_nearest(struct streams *t, const struct access *a)
{
    s64 nearest = 0;
    for (struct stream *s = t->table; s < t->table + STREAMS; s++) {
        s64 stride = a->first - s->first;
        if (s->stamp && stride && distance(stride, 0) <= STRIDE_MAX &&
            (!nearest || distance(stride, 0) < distance(nearest, 0)))
            nearest = stride;
    }
    return nearest;
}

static void note_first(struct stream *s, s64 first, s64 last, u64 stamp)
{
    *s = (struct stream){.first = first, .last = last, .edge = last + 1, .stamp = stamp};
    s->mark = NO_PAGE;
    s->cap = NO_CAP;
    s->grain = 1;
}

static struct stream *quietest(struct streams *t)
{
    struct stream *quiet = t->table;
    for (struct stream *s = t->table; s < t->table + STREAMS; s++)
        if (s->stamp < quiet->stamp)
            quiet = s;
    return quiet;
}

static struct stream *new_stream(struct streams *t, const struct access *a)
{
    struct stream *s = quietest(t);
    note_first(s, a->first, a->last, t->clock);
    s->stride = 1;
    return s;
}

/*
 * Accesses at equal distances may be one stream, or the beginnings of as many, which will go on side by side. So each stays in
 * the table by itself, as long as that is not clear. => the stream, which may have another place now
 */
static struct stream *leave_behind(struct streams *t, struct stream *s, const struct access *a)
{
    if (!is_sparse(s, a) || s->steps >= STEPS_SURE)
        return s;
    struct stream *moved = quietest(t);
    *moved = *s;
    if (moved != s)
        note_first(s, s->first, s->last, s->stamp);
    return moved;
}

/* ---- What happens ---- */

/* In one word, for the trace. */
static const char *pattern_of(const struct stream *s)
{
    return s->stride == 1 ? "sequential" : s->stride == -1 ? "backward" : "strided";
}

/* What is read of the access in one go. The limit is not 0: without a window no plan is made. */
static s64 own_pages(const struct access *a)
{
    return MIN(a->n, (s64)a->limit);
}

/* A stream has shown itself. */
static void gain_trust(struct streams *t)
{
    t->trust = MIN(t->trust + TRUST_FOR_STREAM, TRUST_MAX);
}

/* What is wanted now, and what is read ahead behind it in one window; of a wide stride each page by itself. */
static void read_on(struct stream *s, const struct access *a, struct plan *plan, s64 mark_from)
{
    plan->own_pages = own_pages(a);
    if (is_sparse(s, a)) {
        s->edge = a->last + direction(s);
        extend_sparse(s, plan);
        return;
    }
    s->size = MAX((s64)s->size, plan->own_pages);
    s->edge = s->stride > 0 ? a->page : a->page + plan->own_pages - 1;
    extend_dense(s, plan, mark_from);
}

/* From the first page of a file, or where the program has said that it goes in order; else a guess. */
static u32 first_size(const struct access *a)
{
    if (a->is_sequential || (a->first == 0 && !a->is_read))
        return a->limit;
    return MIN(a->first == 0 ? MAX(2 * a->n, (s64)GUESS_PAGES) : a->n + GUESS_PAGES - 1,
               (s64)a->limit);
}

static void on_new(struct streams *t, const struct access *a, struct plan *plan)
{
    s64 stride = stride_from_nearest(t, a);
    struct stream *s = new_stream(t, a);
    bool is_guess = !a->is_sequential && a->first > 0;
    plan->own_pages = own_pages(a);
    plan->pattern = !is_guess ? "initial" : t->trust > 0 ? "guess" : "single";
    if (is_guess && a->before >= HISTORY) {
        plan->pattern = "adopted"; /* forgotten, among so many others */
        s->steps = 2;
        s->size = MIN(a->before, (s64)a->limit);
        read_on(s, a, plan, a->last + 1);
        return;
    }
    if (a->is_sequential || t->trust > 0) {
        s->size = first_size(a);
        s64 mark_from = a->is_read ? MIN(a->page + MAX(s->size / 2, 1u), a->last + 1) : a->page + 1;
        read_on(s, a, plan, mark_from);
        t->trust -= is_guess;
    }
    if (is_guess)
        s->stride = stride;
}

static void on_step(struct streams *t, struct stream *s, const struct access *a, struct plan *plan)
{
    s64 stride = stride_to(s, a);
    bool skips = !stride_beside(s, a) && is_just_beyond(s, a);
    if (skips)
        s->grain = GRAIN;
    s->stride = stride;
    plan->pattern = pattern_of(s);
    s = leave_behind(t, s, a);
    s->stamp = t->clock;
    if (++s->steps == STEPS_TRUSTED && !skips)
        gain_trust(t);
    note_access(s, a);
    if (!skips || a->may_guess)
        grow(s, a);
    read_on(s, a, plan, s->stride > 0 ? a->last + 1 : a->first - 1);
}

/* What was read ahead did not live until it was wanted: memory is short, or there are too many streams for it. */
static void on_dropped(struct streams *t, struct stream *s, const struct access *a,
                       struct plan *plan)
{
    s->stamp = t->clock;
    plan->pattern = "thrashing";
    note_access(s, a);
    s->cap = MAX(s->size / 2, CAP_MIN);
    s->slow_marks = 0;
    s->size = is_sparse(s, a) ? 0 : MIN(s->size, s->cap);
    if (s->stride == 0)
        s->stride = 1;
    read_on(s, a, plan, a->page + direction(s) * MAX((s64)s->size, own_pages(a)) / 2);
}

static void plan_miss(struct streams *t, const struct access *a, struct plan *plan)
{
    struct stream *s = find(t, a, has_noted);
    if (s && a->page != a->first) {
        plan->own_pages = own_pages(a);
        s->stamp = t->clock;
    } else if (!(s = find_any(t, a))) {
        on_new(t, a, plan);
    } else if (has_asked_for(s, a)) {
        on_dropped(t, s, a, plan);
    } else {
        on_step(t, s, a, plan);
    }
}

/* A mark of no stream that is known: another policy's, or of one that was forgotten. What is cached before it tells how far that was. */
static void adopt_mark(struct streams *t, const struct access *a, struct plan *plan)
{
    struct stream *s = new_stream(t, a);
    plan->pattern = "adopted";
    s->steps = 1;
    s->edge = a->absent;
    s->size = MIN(a->before, (s64)a->limit);
    if (a->absent <= a->page + a->max)
        extend_dense(s, plan, s->edge);
}

static void plan_mark(struct streams *t, const struct access *a, struct plan *plan)
{
    struct stream *s = find(t, a, has_marked);
    if (!s && !(s = find_any(t, a))) {
        adopt_mark(t, a, plan);
        return;
    }
    if (s->steps == 0)
        s->stride = a->first < s->first ? -1 : 1; /* of a guess, or beside an access */
    plan->pattern = pattern_of(s);
    s = leave_behind(t, s, a);
    if (s->steps == 0 || s->steps + 1 == STEPS_TRUSTED)
        gain_trust(t);
    s->steps++;
    s->stamp = t->clock;
    note_access(s, a);
    if (s->stride > 0 && s->edge <= s->last)
        s->edge = a->absent;
    if (s->cap < 2 * a->limit)
        s->cap++;
    if (a->is_slow)
        s->slow_marks++;
    else if (s->slow_marks < SLOW_MARKS)
        s->slow_marks = 0;
    grow(s, a);
    if (is_sparse(s, a)) {
        extend_sparse(s, plan);
        return;
    }
    if (distance(s->stride, 0) > 1)
        s->edge = next_touch(s, s->edge);
    extend_dense(s, plan, s->edge);
}

/* ---- The doors ---- */

static struct access access_of(const struct readahead_call *call)
{
    const struct readahead *ra = &call->file->readahead;
    u64 n = call->wanted_pages, all = call->index + n - call->access;
    u64 io_max = call->file->cache->max_request_pages;
    bool is_read = call->kind == READAHEAD_READ;
    struct access a = {.first = call->access, .last = call->index + n - 1, .page = call->index};
    a.n = n;
    a.max = READ_ONCE(ra->max_pages);
    a.is_read = is_read;
    a.is_random = is_read ? ra->advised_random : call->hint_random;
    a.is_sequential = is_read ? ra->advised_sequential : call->hint_sequential;
    a.limit = call->hint_sequential ? 2 * a.max : a.max;
    if (all > 1 && all > a.max / 2)
        a.limit = MIN(2 * all, 2 * io_max);
    return a;
}

static void submit(struct readahead_call *call, const struct plan *plan)
{
    bool is_in_window = plan->count && !plan->is_sparse;
    call->pattern = plan->pattern;
    if (plan->own_pages && !is_in_window)
        readahead_submit(call, call->index, plan->own_pages, READAHEAD_NO_MARK);
    for (u32 i = 0; i < plan->count && !call->error; i++) {
        s64 start = plan->start + (s64)i * plan->step;
        s64 mark = plan->is_sparse ? start : plan->mark;
        if (start >= 0 && plan->size > 0)
            readahead_submit(call, start, plan->size,
                             mark == NO_PAGE ? READAHEAD_NO_MARK : (pgoff_t)mark);
    }
}

typedef void (*planner)(struct streams *t, const struct access *a, struct plan *plan);

static void ask(struct readahead_call *call, struct access *a, planner make_plan)
{
    struct readahead *ra = &call->file->readahead;
    struct plan plan = {.mark = NO_PAGE, .pattern = "single"};
    struct streams *t = readahead_lock_state(ra, &readahead_stream);
    if (t) {
        if (t->clock++ == 0)
            t->trust = TRUST_START;
        a->may_guess = t->trust > 0;
        make_plan(t, a, &plan);
    }
    spin_unlock(&ra->lock);
    submit(call, &plan);
}

static void on_miss(struct readahead_call *call)
{
    struct access a = access_of(call);
    a.before = page_cache_count_before(call->file->cache, call->index, a.max);
    if (a.max > 0 && !a.is_random)
        ask(call, &a, plan_miss);
    else
        readahead_submit(call, call->index, a.max > 0 ? own_pages(&a) : 1, READAHEAD_NO_MARK);
}

static void on_mark(struct readahead_call *call)
{
    struct page_cache *cache = call->file->cache;
    struct access a = access_of(call);
    if (a.max == 0 || a.is_random)
        return;
    struct page *page = page_cache_find(cache, call->index);
    a.is_slow = page && page_is_locked(page);
    if (page)
        page_put(page);
    a.absent = page_cache_next_absent(cache, call->index + 1, call->index + a.max);
    a.before = page_cache_count_before(cache, call->index, a.max);
    ask(call, &a, plan_mark);
}

/* All of it. */
static void willneed(struct readahead_call *call)
{
    readahead_submit(call, call->index, call->wanted_pages, READAHEAD_NO_MARK);
}

const struct readahead_policy readahead_stream = {
    .name = "stream",
    .state_bytes = sizeof(struct streams),
    .fault_miss = on_miss,
    .fault_mark = on_mark,
    .read_miss = on_miss,
    .read_mark = on_mark,
    .willneed = willneed,
};
