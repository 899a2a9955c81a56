/*
 * The tie between terminals and processes.
 */
#ifndef KERNEL_TASK_TERMINAL_H
#define KERNEL_TASK_TERMINAL_H

/* Tells terminals how to find groups and sessions, and processes whom a session's end concerns.
 * Once, at boot, before the first program. */
void terminal_init(void);

#endif
