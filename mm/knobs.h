/*
 * The knobs under /proc/sys/vm and `vm.NAME=` on the kernel command line: one table, so that a new one is one line.
 */
#ifndef MM_KNOBS_H
#define MM_KNOBS_H

#include "lib/types.h"

struct knob {
    const char *name;              /* "fault_retry" */
    int (*set)(const char *value); /* => 0 or -EINVAL */
    void (*get)(char *buf, size_t size);
};

extern const struct knob knobs[];
extern const unsigned knobs_count;
int knob_set(const char *name, const char *value); /* => 0, -ENOENT, -EINVAL */

/* Current values, read on the fault path. */
struct fault;
struct fault_retry_policy {
    const char *name;
    bool (*may_let_go)(const struct fault *f);
    bool
        takes_back; /* after the wait: the lock again, and the same VMA where nothing has changed */
};
struct fault_drop_policy {
    const char *name;
    bool before_asking; /* else only when a page must be waited for */
};
extern const struct fault_retry_policy *fault_retry_policy;
extern const struct fault_drop_policy *fault_drop_policy;
extern u32 fault_pin;        /* vm.fault_pin */
extern u32 map_around_bytes; /* vm.map_around_bytes */

#endif
