/*
 * The flat model of a range tree: a sorted array, every operation written the obvious way. What the
 * tree does in the tests is compared with this.
 */
#ifndef TESTS_HOST_RANGE_MODEL_H
#define TESTS_HOST_RANGE_MODEL_H

#include <string.h>

#include "lib/errno.h"
#include "lib/range_tree.h"

#define MODEL_MAX 8192

struct model {
    size_t count;
    struct range_entry entry[MODEL_MAX];
};

static inline void model_copy(struct model *to, const struct model *from)
{
    to->count = from->count;
    memcpy(to->entry, from->entry, from->count * sizeof(from->entry[0]));
}

/* Index of the first entry with end > addr. */
static inline size_t model_next(const struct model *m, u64 addr)
{
    size_t low = 0, high = m->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (m->entry[middle].end > addr)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static inline void *model_find(const struct model *m, u64 addr)
{
    size_t i = model_next(m, addr);

    return i < m->count && m->entry[i].start <= addr ? m->entry[i].item : NULL;
}

/* Index of the entry that begins at start, or count. */
static inline size_t model_at(const struct model *m, u64 start)
{
    size_t i = model_next(m, start);

    return i < m->count && m->entry[i].start == start ? i : m->count;
}

static inline int model_insert(struct model *m, u64 start, u64 end, void *item)
{
    size_t i = model_next(m, start);

    if (start >= end || !item)
        return -EINVAL;
    if (i < m->count && m->entry[i].start < end)
        return -EEXIST;
    memmove(&m->entry[i + 1], &m->entry[i], (m->count - i) * sizeof(m->entry[0]));
    m->entry[i] = (struct range_entry){start, end, item};
    m->count++;
    return 0;
}

static inline int model_remove(struct model *m, u64 start)
{
    size_t i = model_at(m, start);

    if (i == m->count)
        return -ENOENT;
    m->count--;
    memmove(&m->entry[i], &m->entry[i + 1], (m->count - i) * sizeof(m->entry[0]));
    return 0;
}

static inline int model_resize(struct model *m, u64 start, u64 new_start, u64 new_end, void *item)
{
    size_t i = model_at(m, start);

    if (new_start >= new_end || !item)
        return -EINVAL;
    if (i == m->count)
        return -ENOENT;
    if (i > 0 && m->entry[i - 1].end > new_start)
        return -EEXIST;
    if (i + 1 < m->count && m->entry[i + 1].start < new_end)
        return -EEXIST;
    m->entry[i] = (struct range_entry){new_start, new_end, item};
    return 0;
}

/* Tries every gap, from the top. */
static inline int model_gap_down(const struct model *m, u64 low, u64 high, u64 size, u64 *start_out)
{
    if (size == 0)
        return -EINVAL;
    for (size_t i = m->count + 1; i-- > 0;) {
        u64 from = i > 0 ? m->entry[i - 1].end : 0;
        u64 to = i < m->count ? m->entry[i].start : UINT64_MAX;

        from = MAX(from, low);
        to = MIN(to, high);
        if (to >= from && to - from >= size) {
            *start_out = to - size;
            return 0;
        }
    }
    return -ENOMEM;
}

#endif
