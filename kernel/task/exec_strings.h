/*
 * Arguments and environment of execve on their way from the old program to the new one.
 */
#ifndef KERNEL_TASK_EXEC_STRINGS_H
#define KERNEL_TASK_EXEC_STRINGS_H

#include "kernel/task/process.h"

#define EXEC_SCRIPT_DEPTH     4 /* interpreters that are scripts themselves */
#define EXEC_STRING_MAX_BYTES (128ul * 1024)
#define EXEC_SCRIPT_WORDS \
    (3 * EXEC_SCRIPT_DEPTH) /* room in front of argv: interpreter, argument, path for each */

struct exec_strings {
    char *block; /* the strings, one behind the other */
    size_t used, capacity;
    const char **pointers; /* EXEC_SCRIPT_WORDS free ones, argv, NULL, envp, NULL */
    u32 first;             /* index of argv[0] */
    u32 argc, envc;
    char *script_words[EXEC_SCRIPT_WORDS];
    u32 n_script_words;
};

/* Copies both arrays of the current program. => 0, -EFAULT, -E2BIG, -ENOMEM. exec_strings_free in any case. Sleeps. */
int exec_strings_copy(struct exec_strings *strings, u64 argv, u64 envp);
void exec_strings_free(struct exec_strings *strings);
/*
 * For a script: argv[0] becomes `interpreter`, `argument` (unless NULL), `script`.
 * => 0, -ENOMEM, -ELOOP
 */
int exec_strings_put_script(struct exec_strings *strings, const char *interpreter,
                            const char *argument, const char *script);
/* For exec_load; good until exec_strings_free. */
struct exec_arguments exec_strings_arguments(const struct exec_strings *strings,
                                             const char *exec_path);

#endif
