/*
 * Pretouch: make the program itself resident, so that it causes no fault and no disk read of its
 * own while it measures those of others.
 */
#ifndef USER_LIB_PRETOUCH_H
#define USER_LIB_PRETOUCH_H

#include <stddef.h>

/*
 * Touches every page of the program's segments, those that may be written by a store of what is
 * there, and locks them where it may (mlock(2)); and a stretch of stack below the caller.
 */
void pretouch_program(void);

/* Stores to every page of a buffer (its contents are kept). */
void pretouch_buffer(void *buffer, size_t bytes);

#endif
