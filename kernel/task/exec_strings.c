/*
 * Copying argv and envp. The limit is Linux's: a quarter of the stack limit for strings and pointers, 128 KiB for one
 * string; and what kmalloc gives at most.
 */
#include "kernel/task/exec_strings.h"

#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/user_memory.h"

#define FIRST_CAPACITY    4096ul
#define STACK_SHARE       4
#define ROOM_FOR_THE_REST 1024ul /* auxiliary vector and the program's own first pointers */

static size_t limit_bytes(void)
{
    u64 share = limit_current(LIMIT_STACK) / STACK_SHARE;
    return MIN(share, KMALLOC_MAX_BYTES - ROOM_FOR_THE_REST);
}

static int grow(struct exec_strings *strings)
{
    size_t capacity = strings->capacity ? 2 * strings->capacity : FIRST_CAPACITY;
    if (capacity > KMALLOC_MAX_BYTES)
        return -E2BIG;
    char *block = kmalloc(capacity);
    if (!block)
        return -ENOMEM;
    if (strings->used)
        memcpy(block, strings->block, strings->used);
    kfree(strings->block);
    strings->block = block;
    strings->capacity = capacity;
    return 0;
}

/* One string to the end of the block. */
static int add_string(struct exec_strings *strings, u64 user)
{
    for (;;) {
        size_t room = MIN(strings->capacity - strings->used, EXEC_STRING_MAX_BYTES);
        ssize_t n = room ? copy_string_from_user(strings->block + strings->used, user, room)
                         : -ENAMETOOLONG;
        if (n >= 0) {
            strings->used += n + 1;
            return 0;
        }
        if (n != -ENAMETOOLONG)
            return n;
        if (room == EXEC_STRING_MAX_BYTES)
            return -E2BIG;
        int error = grow(strings);
        if (error)
            return error;
    }
}

/* All strings of one array. => 0 with *count */
static int add_array(struct exec_strings *strings, u64 array, u32 *count)
{
    size_t limit = limit_bytes();
    for (*count = 0; array; ++*count) {
        u64 pointer;
        if (copy_from_user(&pointer, array + *count * sizeof(u64), sizeof(pointer)))
            return -EFAULT;
        if (!pointer)
            break;
        int error = add_string(strings, pointer);
        if (error)
            return error;
        if (strings->used + (strings->argc + strings->envc + 1) * sizeof(u64) > limit)
            return -E2BIG;
    }
    return 0;
}

static int make_pointers(struct exec_strings *strings)
{
    u32 n = EXEC_SCRIPT_WORDS + strings->argc + 1 + strings->envc + 1;
    strings->pointers = kzalloc(n * sizeof(*strings->pointers));
    if (!strings->pointers)
        return -ENOMEM;
    const char *string = strings->block;
    strings->first = EXEC_SCRIPT_WORDS;
    for (u32 i = 0; i < strings->argc + strings->envc; i++) {
        u32 behind_argv = i >= strings->argc;
        strings->pointers[EXEC_SCRIPT_WORDS + i + behind_argv] = string;
        string += strlen(string) + 1;
    }
    return 0;
}

int exec_strings_copy(struct exec_strings *strings, u64 argv, u64 envp)
{
    *strings = (struct exec_strings){0};
    int error = grow(strings);
    if (!error)
        error = add_array(strings, argv, &strings->argc);
    if (!error && strings->argc == 0) { /* as Linux: a program always has a name */
        strings->block[strings->used++] = '\0';
        strings->argc = 1;
    }
    if (!error)
        error = add_array(strings, envp, &strings->envc);
    return error ? error : make_pointers(strings);
}

void exec_strings_free(struct exec_strings *strings)
{
    for (u32 i = 0; i < strings->n_script_words; i++)
        kfree(strings->script_words[i]);
    kfree(strings->pointers);
    kfree(strings->block);
}

static int put_in_front(struct exec_strings *strings, const char *word)
{
    if (strings->first == 0 || strings->n_script_words == EXEC_SCRIPT_WORDS)
        return -ELOOP;
    size_t bytes = strlen(word) + 1;
    char *copy = kmalloc(bytes);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, word, bytes);
    strings->script_words[strings->n_script_words++] = copy;
    strings->pointers[--strings->first] = copy;
    strings->argc++;
    return 0;
}

int exec_strings_put_script(struct exec_strings *strings, const char *interpreter,
                            const char *argument, const char *script)
{
    /* argv[0] makes room for the script's path. */
    strings->first++;
    strings->argc--;
    int error = put_in_front(strings, script);
    if (!error && argument)
        error = put_in_front(strings, argument);
    return error ? error : put_in_front(strings, interpreter);
}

struct exec_arguments exec_strings_arguments(const struct exec_strings *strings,
                                             const char *exec_path)
{
    const char *const *argv = strings->pointers + strings->first;
    return (struct exec_arguments){.argc = strings->argc,
                                   .envc = strings->envc,
                                   .argv = argv,
                                   .envp = argv + strings->argc + 1,
                                   .exec_path = exec_path};
}
