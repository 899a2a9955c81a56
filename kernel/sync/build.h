/*
 * Which kernel this is, as a constant: code that is for one kind only is compiled in both.
 */
#ifndef KERNEL_SYNC_BUILD_H
#define KERNEL_SYNC_BUILD_H

#ifdef CONFIG_DEBUG
#define IS_DEBUG_BUILD 1
#else
#define IS_DEBUG_BUILD 0
#endif

#endif
