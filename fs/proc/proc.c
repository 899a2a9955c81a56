/*
 * /proc: the tables of files, one after the other.
 */
#include "fs/proc/proc.h"

#include "kernel/log/log.h"

void proc_add_table(struct super_block *proc, const struct text_file *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int error = textfs_add(proc, &entries[i]);

        if (error)
            panic("/proc/%s cannot be made: error %d", entries[i].path, error);
    }
}

void proc_add_system_files(struct super_block *proc, const char *cmdline)
{
    proc_add_machine_files(proc, cmdline);
    proc_add_memory_files(proc);
    proc_add_vm_files(proc);
    proc_add_kernel_files(proc);
    proc_add_log_files(proc);
    proc_add_load_files(proc);
}
