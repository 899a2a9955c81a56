/*
 * The end of a thread that somebody still looks at.
 */
#include "kernel/task/process_internal.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/programs.h"

KTEST(thread, what_switches_write_to_goes_with_its_own_task_not_with_the_last_reference)
{
    int error;

    if (!program_exists("/tests/hog")) {
        ktest_skip("no root file system with /tests/hog");
        return;
    }
    struct process *process = program_start("/tests/hog", "hold", "1", NULL, false, &error);
    KASSERT(process != NULL);
    struct thread *thread = thread_find(process, process->pid);
    KASSERT(thread != NULL);
    struct task *task = thread->task;
    KEXPECT(task->fpu_area != NULL);
    task_kill(task);
    KEXPECT_EQ(program_end(process), 128 + SIGKILL);
    KEXPECT(task->fpu_area == NULL);
    thread_put(thread);
    process_put(process);
}
