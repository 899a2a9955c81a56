/*
 * Within fs/dev: the operations of the character devices that the table in dev.c names.
 */
#ifndef FS_DEV_DEVICES_H
#define FS_DEV_DEVICES_H

#include "fs/vfs.h"

extern const struct file_ops file_ops_null;        /* read: end of file; write: all taken */
extern const struct file_ops file_ops_zero;        /* read: zeros; write: all taken */
extern const struct file_ops file_ops_full;        /* read: zeros; write: -ENOSPC */
extern const struct file_ops file_ops_random;      /* read: random_bytes(); write: all taken */
extern const struct file_ops file_ops_console;     /* the second serial port, or its terminal */
extern const struct file_ops file_ops_controlling; /* the caller's controlling terminal */

void random_init(void); /* the seed; once, before the first random_bytes */

#endif
