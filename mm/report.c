/*
 * For reports: the fault that a task is in the middle of, and where its program was when it died or
 * went to sleep in the kernel, by file and offset, since nothing may be read from a disk then.
 *
 * In a panic nothing is locked: all others stand still. Else the task may go on meanwhile, and its process end. Interrupts are
 * off, so that the address space and an area just found are memory of such still (kernel/sched/grace.h); the area's file is held
 * by the area's lock, as a fault has it. A lock that is not free is not waited for.
 */
#include "kernel/log/report.h"
#include "kernel/cpu/trap.h"
#include "kernel/cpu/uaccess.h"
#include "kernel/sched/task.h"
#include "mm/core/page_table.h"
#include "mm/fault.h"
#include "mm/vma_internal.h"

#define PATH_SHOWN_BYTES 96

/* The frame by which the thread entered the kernel lies at the top of its stack. */
static bool read_user_rip(const struct task *task, u64 *rip)
{
    u64 top = (u64)task->stack + KERNEL_STACK_BYTES, cs;
    const struct trap_frame *frame = (const struct trap_frame *)top - 1;

    return task->stack && task->fpu_area && !kernel_probe_read((u64)&frame->cs, &cs) &&
           cs == USER_CS && !kernel_probe_read((u64)&frame->rip, rip);
}

static void print_place_in(const struct vma *vma, u64 rip, report_line line)
{
    char path[PATH_SHOWN_BYTES] = "";

    if (!vma || !vma->file || !vma->file->path) {
        line("the program was at %#lx, which is no file's", rip);
        return;
    }
    vma->file->path(vma->file, path, sizeof(path));
    line("the program was at %#lx: byte %#lx of %s (addr2line -f -e PROGRAM %#lx)", rip,
         rip - vma->start + (vma->pgoff << PAGE_SHIFT), path, rip);
}

static void print_program_place(const struct report *r, report_line line)
{
    struct mm *mm = r->task ? READ_ONCE(r->task->mm) : NULL;
    u64 rip;

    if (!mm || !read_user_rip(r->task, &rip))
        return;
    struct vma *vma = vma_find(mm, rip);
    if (!vma || panic_in_progress()) {
        print_place_in(vma, rip, line);
        return;
    }
    bool is_locked = rwsem_read_trylock(&vma->lock);
    if (is_locked && !(vma->flags & VMA_DETACHED))
        print_place_in(vma, rip, line);
    else
        line("the program was at %#lx, in an area that is being changed", rip);
    if (is_locked)
        rwsem_read_unlock(&vma->lock);
}

static void print_fault(const struct report *r, report_line line)
{
    const struct fault *f = r->task ? READ_ONCE(r->task->fault) : NULL;

    if (f)
        line("in the middle of a page fault: %s of %#lx, attempt %u, with its lock %s",
             f->access == FAULT_WRITE  ? "write"
             : f->access == FAULT_EXEC ? "execution"
                                       : "read",
             f->addr, f->attempt + 1, f->locked ? "held" : "let go");
}

#define KINDS (REPORT_OF_PANICS | REPORT_KIND_BIT(REPORT_HUNG_TASK))

static struct report_section sections[] = {
    {REPORT_WHOSE, KINDS, print_fault, NULL},
    {REPORT_WAY, KINDS, print_program_place, NULL},
};

void mm_report_init(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(sections); i++)
        report_add_section(&sections[i]);
}
