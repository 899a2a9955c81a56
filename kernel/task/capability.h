/*
 * Capabilities of a process (capabilities(7)). Everybody is root and has all of them, until a
 * program gives some up by capset(2); exec gives them back, as it does to root. They are kept for
 * the process, not for each thread. Only CAP_IPC_LOCK means anything here: without it
 * RLIMIT_MEMLOCK holds.
 */
#ifndef KERNEL_TASK_CAPABILITY_H
#define KERNEL_TASK_CAPABILITY_H

#include "lib/types.h"

#define CAP_IPC_LOCK 14
#define CAP_LAST     40 /* CAP_CHECKPOINT_RESTORE */
#define CAP_ALL      ((1ul << (CAP_LAST + 1)) - 1)

struct capabilities {
    u64 effective, permitted, inheritable; /* a bit each */
};
#define CAPABILITIES_OF_ROOT ((struct capabilities){CAP_ALL, CAP_ALL, 0})

#endif
