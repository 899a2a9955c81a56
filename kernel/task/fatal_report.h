/*
 * The report of a program that ends by its own mistake.
 */
#ifndef KERNEL_TASK_FATAL_REPORT_H
#define KERNEL_TASK_FATAL_REPORT_H

#include "kernel/cpu/trap.h"
#include "mm/fault.h"

struct fatal_cause {
    u32 signal;
    s32 code; /* si_code */
    bool has_access;
    u64 addr; /* of the access */
    enum fault_access access;
    const char *words; /* what happened, where the code does not say it; else NULL */
};

/*
 * Writes the report to the log, for the current thread, which is not marked as killed yet (files are
 * read for names). Where one is being written already, or there were many lately, only its first line.
 * Sleeps; no lock held on entry.
 */
void fatal_report(const struct trap_frame *frame, const struct fatal_cause *cause);

/* The current thread is about to send itself this signal: reported if it is a mistake that will end the process. */
void fatal_note_own_signal(u32 signal, u32 tid);

void fatal_report_init(void);

#endif
