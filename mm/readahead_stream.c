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
 * A guess is what a reader in the middle of a file gets at its first access. It saves a stream's second wait, and is waste where
 * access is random: each guess costs a point of trust, and a stream that shows itself gives some back. Without trust a
 * stream shows itself by its second access, or, where its accesses are not side by side, by its third.
 */
#include "mm/mapped_file.h"
#include "mm/readahead_policy.h"

#define STREAMS          32
#define GUESS_PAGES      4
#define TRUST_START      8
#define TRUST_MAX        16
#define TRUST_FOR_STREAM 2
#define STRIDE_MAX       4096 /* pages; accesses farther apart are strangers */
#define GROWTH           4
#define CAP_MIN          2
#define SPARSE_MAX       2 /* accesses ahead: what a stream that ends leaves unused */
#define NO_PAGE          (-1l)

/* Pages are signed here: a backward stream's edge passes page 0. */
struct stream {
    s64 first, last; /* the latest access known */
    s64 stride;      /* from access to access; 0: there was one only */
    s64 edge;        /* next page to ask for, in the direction of travel */
    s64 mark;        /* the page that carries it, or NO_PAGE */
    u32 size, cap;   /* pages of the last window, of the largest allowed; sparse: accesses ahead */
    u32 steps;       /* accesses that came where they were expected */
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
    bool is_read, is_sequential;
};

/* What to ask for: the access's own pages first, then `count` windows, `step` apart. */
struct plan {
    s64 own_pages;
    s64 start, size, step;
    u32 count;
    s64 mark; /* NO_PAGE: none. Sparse: each window's own page */
    bool is_sparse;
};

/* ---- One stream ---- */

static s64 distance(s64 a, s64 b)
{
    return a > b ? a - b : b - a;
}

static bool is_sparse(const struct stream *s, u32 max)
{
    return distance(s->stride, 0) > 1 && distance(s->stride, 0) * 2 > max;
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
static bool is_asked_for(const struct stream *s, s64 page, u32 max)
{
    bool is_inside =
        s->edge > s->last ? page > s->last && page < s->edge : page < s->first && page > s->edge;
    return is_inside && (!is_sparse(s, max) || (page - s->first) % s->stride == 0);
}

/* A little beyond the window, from a stream that skips pages now and then. */
static bool is_just_beyond(const struct stream *s, const struct access *a)
{
    return s->stride >= 0 ? a->page >= s->edge && a->page < s->edge + s->size
                          : a->page <= s->edge && a->page > s->edge - (s64)s->size;
}

/* The stride with which the access continues the stream; 0: it does not. */
static s64 stride_to(const struct stream *s, const struct access *a)
{
    bool is_proven = s->steps > 0;
    if (a->first == s->last + 1 && (!is_proven || s->stride == 1))
        return 1;
    if (a->last == s->first - 1 && (!is_proven || s->stride == -1))
        return -1;
    if (s->stride && a->first == s->first + s->stride)
        return s->stride;
    if (is_proven && a->page == next_touch(s, s->edge))
        return s->stride;
    if (!is_sparse(s, a->max) && is_just_beyond(s, a))
        return s->stride < 0 ? -1 : 1;
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
    u32 limit = s->cap < a->max ? s->cap : a->limit;
    if (is_sparse(s, a->max))
        s->size = MIN(MAX(s->size, 1u) * 2, SPARSE_MAX);
    else
        s->size = MIN(MAX(s->size, 2u) * GROWTH, limit);
}

/* ---- The table ---- */

/* The stream that the same access has been noted in. */
static struct stream *find_access(struct streams *t, const struct access *a)
{
    for (struct stream *s = t->table; s < t->table + STREAMS; s++)
        if (s->stamp && s->first == a->first && s->last == a->last)
            return s;
    return NULL;
}

static struct stream *find_asked_for(struct streams *t, const struct access *a)
{
    for (struct stream *s = t->table; s < t->table + STREAMS; s++)
        if (s->stamp && is_asked_for(s, a->page, a->max))
            return s;
    return NULL;
}

static struct stream *find_marked(struct streams *t, const struct access *a)
{
    for (struct stream *s = t->table; s < t->table + STREAMS; s++)
        if (s->stamp && s->mark == a->page)
            return s;
    return find_asked_for(t, a);
}

/* Where several fit, the latest. */
static struct stream *find_continued(struct streams *t, const struct access *a)
{
    struct stream *best = NULL;
    for (struct stream *s = t->table; s < t->table + STREAMS; s++)
        if (s->stamp && (!best || s->stamp > best->stamp) && stride_to(s, a))
            best = s;
    return best;
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

/* Takes the place of the one that has been quiet for longest. */
static struct stream *new_stream(struct streams *t, const struct access *a)
{
    s64 stride = stride_from_nearest(t, a);
    struct stream *quiet = t->table;
    for (struct stream *s = t->table; s < t->table + STREAMS; s++)
        if (s->stamp < quiet->stamp)
            quiet = s;
    *quiet =
        (struct stream){.stride = stride, .edge = a->page + a->n, .mark = NO_PAGE, .cap = a->max};
    note_access(quiet, a);
    return quiet;
}

/* ---- What happens ---- */

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

/* A stream from here on: the access's pages and those behind it in one window, the mark where the next access will be. */
static void start_window(struct stream *s, const struct access *a, u32 size, struct plan *plan)
{
    s64 ahead = MAX((s64)size / 2, 1l);
    s->stride = 1;
    s->edge = a->page;
    s->size = size;
    note_access(s, a);
    extend_dense(s, plan, a->is_read ? MIN(a->page + ahead, a->last + 1) : a->page + 1);
}

/* From the first page of a file, or where the program has said that it goes in order. */
static u32 first_size(const struct access *a)
{
    if (!a->is_read || a->is_sequential)
        return a->limit;
    return MIN(MAX(2 * a->n, (s64)GUESS_PAGES), (s64)a->limit);
}

static void on_new(struct streams *t, const struct access *a, struct plan *plan)
{
    struct stream *s = new_stream(t, a);
    s64 stride = s->stride;
    plan->own_pages = own_pages(a);
    s->stamp = t->clock;
    if (a->first == 0 || a->is_sequential) {
        start_window(s, a, first_size(a), plan);
    } else if (t->trust > 0) {
        t->trust--;
        start_window(s, a, MIN(a->n + GUESS_PAGES - 1, (s64)a->limit), plan);
        s->stride = stride;
    }
}

static void on_step(struct streams *t, struct stream *s, const struct access *a, struct plan *plan)
{
    s->stride = stride_to(s, a);
    if (s->steps++ == 0 && !is_just_beyond(s, a))
        gain_trust(t);
    note_access(s, a);
    grow(s, a);
    plan->own_pages = own_pages(a);
    if (is_sparse(s, a->max)) {
        s->edge = a->last + (s->stride > 0 ? 1 : -1);
        extend_sparse(s, plan);
        return;
    }
    s->size = MAX((s64)s->size, plan->own_pages);
    s->edge = s->stride > 0 ? a->page : a->page + plan->own_pages - 1;
    extend_dense(s, plan, s->stride > 0 ? a->last + 1 : a->first - 1);
}

/* What was read ahead did not live until it was wanted: memory is short, or there are too many streams for it. */
static void on_dropped(struct stream *s, const struct access *a, struct plan *plan)
{
    plan->own_pages = own_pages(a);
    note_access(s, a);
    s->cap = MAX(s->size / 2, CAP_MIN);
    s->size = MAX(MIN(s->size, s->cap), plan->own_pages);
    if (is_sparse(s, a->max)) {
        s->edge = a->last + (s->stride > 0 ? 1 : -1);
        return;
    }
    if (s->stride == 0)
        s->stride = 1;
    s->edge = s->stride > 0 ? a->page : a->page + plan->own_pages - 1;
    extend_dense(s, plan, s->stride > 0 ? a->page + s->size / 2 : a->page - s->size / 2);
}

static void plan_miss(struct streams *t, const struct access *a, struct plan *plan)
{
    struct stream *s = find_access(t, a);
    if (s && a->page != a->first) {
        plan->own_pages = own_pages(a);
    } else if ((s = find_continued(t, a))) {
        on_step(t, s, a, plan);
    } else if ((s = find_asked_for(t, a))) {
        on_dropped(s, a, plan);
    } else {
        on_new(t, a, plan);
        return;
    }
    s->stamp = t->clock;
}

/* A mark of no stream that is known: another policy's, or of one that was forgotten. What is behind it decides. */
static void adopt_mark(struct streams *t, const struct access *a, pgoff_t absent, struct plan *plan)
{
    struct stream *s = new_stream(t, a);
    s->stamp = t->clock;
    s->stride = 1;
    s->steps = 1;
    s->edge = absent;
    s->size = absent - a->page;
    grow(s, a);
    if (absent <= (pgoff_t)a->page + a->max)
        extend_dense(s, plan, absent);
}

static void plan_mark(struct streams *t, const struct access *a, pgoff_t absent, struct plan *plan)
{
    struct stream *s = find_marked(t, a);
    if (!s) {
        adopt_mark(t, a, absent, plan);
        return;
    }
    if (s->steps++ == 0) {
        gain_trust(t);
        s->stride = 1; /* a guess goes forward */
    }
    s->stamp = t->clock;
    note_access(s, a);
    if (s->cap < a->max)
        s->cap++;
    grow(s, a);
    if (is_sparse(s, a->max)) {
        extend_sparse(s, plan);
        return;
    }
    if (distance(s->stride, 0) > 1)
        s->edge = next_touch(s, s->edge);
    extend_dense(s, plan, s->edge);
}

/* ---- The doors ---- */

static struct access access_of(const struct readahead_call *call, u32 max)
{
    u32 io_max = call->file->cache->max_request_pages;
    u64 n = call->wanted_pages;
    return (struct access){
        .first = call->access,
        .last = call->index + n - 1,
        .page = call->index,
        .n = n,
        .max = max,
        .limit = n > max                 ? MIN(2 * n, 2 * (u64)io_max)
                 : call->hint_sequential ? 2 * max
                                         : max,
        .is_read = call->kind == READAHEAD_READ,
        .is_sequential = call->kind == READAHEAD_READ ? call->file->readahead.advised_sequential
                                                      : call->hint_sequential,
    };
}

static void submit(struct readahead_call *call, const struct plan *plan)
{
    bool is_in_window = plan->count && !plan->is_sparse;
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

/* ra->lock held. */
static struct streams *tick(struct streams *t)
{
    if (t && t->clock++ == 0)
        t->trust = TRUST_START;
    return t;
}

static bool is_random(const struct readahead_call *call)
{
    return call->kind == READAHEAD_READ ? call->file->readahead.advised_random : call->hint_random;
}

static void on_miss(struct readahead_call *call)
{
    struct readahead *ra = &call->file->readahead;
    u32 max = READ_ONCE(ra->max_pages);
    struct plan plan = {.own_pages = call->wanted_pages, .mark = NO_PAGE};
    struct access a = access_of(call, max);

    if (max == 0 || is_random(call)) {
        plan.own_pages = max == 0 ? 1 : MIN(call->wanted_pages, (u64)a.limit);
    } else {
        struct streams *t = tick(readahead_lock_state(ra, &readahead_stream));
        if (t)
            plan_miss(t, &a, &plan);
        spin_unlock(&ra->lock);
    }
    submit(call, &plan);
}

static void on_mark(struct readahead_call *call)
{
    struct readahead *ra = &call->file->readahead;
    u32 max = READ_ONCE(ra->max_pages);
    struct plan plan = {.mark = NO_PAGE};
    struct access a = access_of(call, max);

    if (max == 0 || is_random(call))
        return;
    pgoff_t absent = page_cache_next_absent(call->file->cache, call->index + 1, call->index + max);
    struct streams *t = tick(readahead_lock_state(ra, &readahead_stream));
    if (t)
        plan_mark(t, &a, absent, &plan);
    spin_unlock(&ra->lock);
    submit(call, &plan);
}

static void ignore_hit(struct readahead *ra)
{
    (void)ra;
}

/* The whole range, in requests as large as the device takes. */
static void willneed(struct readahead_call *call)
{
    u64 step = MAX(call->file->cache->max_request_pages, 1u), left = call->wanted_pages;
    pgoff_t file_end = page_cache_size_pages(call->file->cache);
    for (pgoff_t at = call->index; left && at < file_end && !call->error; at += step) {
        readahead_submit(call, at, MIN(step, left), READAHEAD_NO_MARK);
        left -= MIN(step, left);
    }
}

const struct readahead_policy readahead_stream = {
    .name = "stream",
    .state_bytes = sizeof(struct streams),
    .fault_miss = on_miss,
    .fault_mark = on_mark,
    .fault_hit = ignore_hit,
    .read_miss = on_miss,
    .read_mark = on_mark,
    .willneed = willneed,
};
