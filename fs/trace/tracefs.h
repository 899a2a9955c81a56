/*
 * tracefs: the trace as files, mounted at /sys/kernel/tracing. The layout, names and texts are Linux's.
 *
 *     trace.c     trace: all that is there, as text
 *     pipe.c      trace_pipe: takes out what it shows; trace_marker: a program's own words
 *     buffer.c    buffer_size_kb, buffer_total_size_kb, per_cpu/cpuN/stats: the rings' memory
 *     switch.c    tracing_on, set_event, available_events, events/...: what is recorded
 */
#ifndef FS_TRACE_TRACEFS_H
#define FS_TRACE_TRACEFS_H

#include "fs/text_out.h"
#include "fs/vfs.h"
#include "kernel/log/trace_read.h"

/* An empty tree with its files. Panics when out of memory (boot). May sleep. */
struct super_block *tracefs_create(void);

/* ---- Within fs/trace ---- */

/* The readers' lock of kernel/log/trace_read.h: held while records are taken out, cleared away, or looked at, and while
 * rings are replaced. User memory is not touched under it. */
extern struct mutex trace_read_lock;

void tracefs_add(struct super_block *super, const struct text_file *files, unsigned n);
/* A file with a name made up: copied. */
void tracefs_add_one(struct super_block *super, const char *path, const struct text_file *file);

void tracefs_add_readers(struct super_block *super);
void tracefs_add_pipes(struct super_block *super);
void tracefs_add_buffers(struct super_block *super);
void tracefs_add_switches(struct super_block *super);

/* The small rings of the boot become ones of the usual size, once. Where memory is short they stay. May sleep. */
void trace_buffer_expand(void);
/* Takes all out. May sleep. */
void trace_clear_all(void);

#endif
