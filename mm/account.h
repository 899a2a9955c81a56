/*
 * Counting faults: one record for each fault, made at the one place where it ends.
 */
#ifndef MM_ACCOUNT_H
#define MM_ACCOUNT_H

#include "kernel/sched/task.h"
#include "mm/fault.h"

/* At the trap (started is counted), at each restart, and at the end. */
void account_fault_begin(struct fault *f);
void account_fault_retry(struct fault *f);
void account_retry_miss(void); /* a restart found its awaited page gone */
void account_fault_end(struct fault *f, enum fault_result result);
void account_mapped_around(unsigned pages);
void account_lock_fallback(enum fault_fallback why); /* an attempt took mmap_lock first */
void account_lock_held(const struct fault *f); /* since f->locked_ns, and was let go just now */
/* The calling fault asked the disk for these pages, side by side. */
void account_fault_read(u64 n_pages);
/* The calling task sleeps for numbers that stand on the disk, for a fault in hand perhaps. */
void account_metadata_wait(void);
/* A read() slept for a page. */
void account_read_wait(u64 ns);

/* System-wide sums; same layout as a task's. */
void account_system(struct task_fault_counters *out);
/* The faults among them as "name value" lines, each name with `prefix`; of the histograms lock_hold_N and latency_N what is not 0. => length */
int account_format(const struct task_fault_counters *counters, const char *prefix, char *buf,
                   size_t size);

/* One word each, as trace events and /proc have them. */
const char *account_access_name(enum fault_access access);
const char *account_outcome_name(enum fault_result result);
const char *account_reason_name(enum fault_reason reason);

int account_set_rule(const char *name); /* => 0 or -EINVAL */
const char *account_rule_name(void);

#endif
