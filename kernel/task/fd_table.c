/*
 * The table of open files. The lock is a spinlock: a file is only ever put after it has been released.
 */
#include "kernel/task/fd_table.h"

#include "fs/file_lock.h"
#include "kernel/sync/atomic.h"
#include "kernel/task/limits.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"

#define FIRST_CAPACITY 16

static LOCK_CLASS(fd_lock_class, "fd table");

struct fd_table *fd_table_create(void)
{
    struct fd_table *table = kzalloc(sizeof(*table));
    if (!table)
        return NULL;
    table->refs = 1;
    spin_init(&table->lock, &fd_lock_class);
    return table;
}

/* Room for `capacity` entries, then what is open at that moment; false if there is more by then. */
static bool copy_entries(struct fd_table *to, struct fd_table *from)
{
    bool fits = false;
    spin_lock(&from->lock);
    if (from->capacity <= to->capacity) {
        fits = true;
        for (u32 i = 0; i < from->capacity; i++) {
            to->entries[i] = from->entries[i];
            if (to->entries[i].file)
                file_hold(to->entries[i].file);
        }
    }
    spin_unlock(&from->lock);
    return fits;
}

struct fd_table *fd_table_copy(struct fd_table *from)
{
    struct fd_table *table = fd_table_create();
    if (!table)
        return NULL;
    do {
        kfree(table->entries);
        table->capacity = READ_ONCE(from->capacity);
        table->entries = kzalloc(MAX(table->capacity, 1u) * sizeof(*table->entries));
        if (!table->entries) {
            kfree(table);
            return NULL;
        }
    } while (!copy_entries(table, from));
    return table;
}

void fd_table_get(struct fd_table *table)
{
    atomic_add(&table->refs, 1);
}

void fd_table_put(struct fd_table *table)
{
    if (atomic_sub(&table->refs, 1) > 0)
        return;
    for (u32 i = 0; i < table->capacity; i++)
        if (table->entries[i].file)
            file_close_for(table->entries[i].file, table);
    kfree(table->entries);
    kfree(table);
}

void fd_table_close_for_exec(struct fd_table *table)
{
    for (u32 i = 0; i < READ_ONCE(table->capacity); i++)
        if (fd_flags(table, i, -1) > 0)
            fd_close(table, i);
}

/* Numbers from this one on are not given. */
static u32 number_limit(void)
{
    return MIN(limit_current(LIMIT_NOFILE), (u64)FD_MAX);
}

/* Makes room for number `fd`, which is below the limit. => 0, -ENOMEM */
static int reserve(struct fd_table *table, u32 fd)
{
    u32 capacity = FIRST_CAPACITY;
    while (capacity <= fd)
        capacity *= 2;
    if (capacity <= READ_ONCE(table->capacity))
        return 0;
    struct fd_entry *bigger = kzalloc(capacity * sizeof(*bigger)), *unused = bigger;
    if (!bigger)
        return -ENOMEM;
    spin_lock(&table->lock);
    if (capacity > table->capacity) {
        unused = table->entries;
        if (unused)
            memcpy(bigger, unused, table->capacity * sizeof(*bigger));
        table->entries = bigger;
        table->capacity = capacity;
    }
    spin_unlock(&table->lock);
    kfree(unused);
    return 0;
}

int fd_install(struct fd_table *table, struct file *file, int min, bool close_on_exec)
{
    u32 limit = number_limit();
    for (;;) {
        spin_lock(&table->lock);
        u32 fd = min;
        while (fd < table->capacity && table->entries[fd].file)
            fd++;
        bool installed = fd < table->capacity && fd < limit;
        if (installed)
            table->entries[fd] = (struct fd_entry){file, close_on_exec};
        spin_unlock(&table->lock);
        if (installed)
            return fd;
        int error = fd < limit ? reserve(table, fd) : -EMFILE;
        if (error)
            return error;
    }
}

struct file *fd_get(struct fd_table *table, int fd)
{
    struct file *file = NULL;
    spin_lock(&table->lock);
    if (fd >= 0 && (u32)fd < table->capacity)
        file = table->entries[fd].file;
    if (file)
        file_hold(file);
    spin_unlock(&table->lock);
    return file;
}

int fd_close(struct fd_table *table, int fd)
{
    struct file *file = NULL;
    spin_lock(&table->lock);
    if (fd >= 0 && (u32)fd < table->capacity) {
        file = table->entries[fd].file;
        table->entries[fd] = (struct fd_entry){0};
    }
    spin_unlock(&table->lock);
    if (!file)
        return -EBADF;
    file_close_for(file, table);
    return 0;
}

int fd_replace(struct fd_table *table, int fd, struct file *file, bool close_on_exec)
{
    if (fd < 0 || (u32)fd >= number_limit())
        return -EBADF;
    int error = reserve(table, fd);
    if (error)
        return error;
    spin_lock(&table->lock);
    struct file *old = table->entries[fd].file;
    table->entries[fd] = (struct fd_entry){file, close_on_exec};
    spin_unlock(&table->lock);
    if (old)
        file_close_for(old, table);
    return fd;
}

int fd_flags(struct fd_table *table, int fd, int set)
{
    int result = -EBADF;
    spin_lock(&table->lock);
    if (fd >= 0 && (u32)fd < table->capacity && table->entries[fd].file) {
        if (set >= 0)
            table->entries[fd].close_on_exec = set;
        result = table->entries[fd].close_on_exec;
    }
    spin_unlock(&table->lock);
    return result;
}
