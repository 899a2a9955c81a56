/*
 * The first stack of a program.
 */
#ifndef KERNEL_TASK_EXEC_STACK_H
#define KERNEL_TASK_EXEC_STACK_H

#include "kernel/task/process.h"

struct exec_auxiliary {
    u64 phdr, phnum;
    u64 base;              /* of the interpreter; 0: none */
    u64 entry;             /* of the program */
    const char *exec_path; /* AT_EXECFN */
};

/*
 * Maps the stack and fills it as the System V ABI (AMD64 supplement, 3.4.1) says. Current task's mm.
 * => 0 with *rsp; -E2BIG: arguments and environment take more than a quarter of the stack limit; -ENOMEM
 */
int exec_build_stack(struct mm *mm, const struct exec_arguments *arguments,
                     const struct exec_auxiliary *aux, u64 *rsp);

#endif
