/*
 * An object whose memory is given back later, after a grace period. Embedded in whatever
 * lock-free readers may still be looking at; kernel/sched/grace.h queues it, the host tests
 * call the function at once or at the end.
 */
#ifndef LIB_DEFERRED_H
#define LIB_DEFERRED_H

struct deferred {
    struct deferred *next;
    void (*free)(struct deferred *self);
};

#endif
