/*
 * The way of a program to where it is: its functions, by the words on its stack.
 */
#ifndef KERNEL_TASK_USER_WAY_H
#define KERNEL_TASK_USER_WAY_H

#include "kernel/log/report.h"

/* "main+0x1c in /tests/hello", "/bin/busybox at 0x1234" (file offset), or what else lies there. */
#define USER_PLACE_BYTES 160
const char *user_place_format(u64 addr, char buf[USER_PLACE_BYTES]);

/*
 * One line for each function, innermost first, from the registers in r->frame (of user mode). For the
 * current program, which does not go on: it touches no page that is not there, but reads files for
 * the names. Sleeps; no lock held on entry.
 */
void user_way_print(const struct report *r, report_line line);

#endif
