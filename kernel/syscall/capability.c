/*
 * capget and capset (capget(2)): what kernel/task/capability.h says about capabilities.
 */
#include "kernel/syscall/syscall.h"

#define VERSION_1 0x19980330u /* 32 capabilities, one word of each set */
#define VERSION_2 0x20071026u
#define VERSION_3 0x20080522u

struct cap_header {
    u32 version;
    s32 pid;
};

struct cap_words {
    u32 effective, permitted, inheritable;
};

/* => how many words each set has in this version; 0: unknown */
static unsigned words_of(u32 version)
{
    if (version == VERSION_1)
        return 1;
    return version == VERSION_2 || version == VERSION_3 ? 2 : 0;
}

/* => whether pid (0: oneself) exists */
static bool find_capabilities(s32 pid, struct capabilities *out)
{
    struct process *process = process_find(pid ? (u32)pid : process_current()->pid);
    if (!process)
        return false;
    spin_lock(&process->lock);
    *out = process->capabilities;
    spin_unlock(&process->lock);
    process_put(process);
    return true;
}

static void to_words(const struct capabilities *from, struct cap_words words[2])
{
    for (unsigned i = 0; i < 2; i++)
        words[i] =
            (struct cap_words){(u32)(from->effective >> 32 * i), (u32)(from->permitted >> 32 * i),
                               (u32)(from->inheritable >> 32 * i)};
}

/* What no capability stands for is not heard. */
static void from_words(const struct cap_words words[2], struct capabilities *to)
{
    *to = (struct capabilities){0};
    for (unsigned i = 0; i < 2; i++) {
        to->effective |= (u64)words[i].effective << 32 * i & CAP_ALL;
        to->permitted |= (u64)words[i].permitted << 32 * i & CAP_ALL;
        to->inheritable |= (u64)words[i].inheritable << 32 * i & CAP_ALL;
    }
}

/* With a version that is unknown, the header gets the one that is preferred. => 0, -EFAULT, -EINVAL */
static int read_header(u64 user, struct cap_header *header, unsigned *words)
{
    const u32 preferred = VERSION_3;
    if (copy_from_user(header, user, sizeof(*header)))
        return -EFAULT;
    *words = words_of(header->version);
    if (*words)
        return 0;
    return copy_to_user(user, &preferred, sizeof(preferred)) ? -EFAULT : -EINVAL;
}

/* capget(header, data) */
s64 sys_capget(const u64 *a)
{
    struct capabilities capabilities;
    struct cap_words found[2];
    struct cap_header header;
    unsigned words;

    int error = read_header(a[0], &header, &words);
    if (error)
        return error == -EINVAL && !a[1] ? 0 : error; /* asked for the version alone */
    if (header.pid < 0)
        return -EINVAL;
    if (!find_capabilities(header.pid, &capabilities))
        return -ESRCH;
    to_words(&capabilities, found);
    return a[1] && copy_to_user(a[1], found, words * sizeof(found[0])) ? -EFAULT : 0;
}

/* Nothing that was given up comes back, but by exec. => 0, -EPERM */
static int change(struct process *process, const struct capabilities *wanted)
{
    struct capabilities *now = &process->capabilities;
    int error = -EPERM;

    spin_lock(&process->lock);
    bool is_known = !(wanted->permitted & ~now->permitted) &&
                    !(wanted->inheritable & ~(now->inheritable | now->permitted));
    if (is_known && !(wanted->effective & ~wanted->permitted)) {
        *now = *wanted;
        error = 0;
    }
    spin_unlock(&process->lock);
    if (!error)
        limits_tell_memory(process->mm);
    return error;
}

/* capset(header, data): only for oneself. */
s64 sys_capset(const u64 *a)
{
    struct cap_header header;
    struct cap_words words[2] = {{0}};
    struct capabilities wanted;
    unsigned n_words;

    int error = read_header(a[0], &header, &n_words);
    if (error)
        return error;
    if (header.pid && (u32)header.pid != process_current()->pid)
        return -EPERM;
    if (copy_from_user(words, a[1], n_words * sizeof(words[0])))
        return -EFAULT;
    from_words(words, &wanted);
    return change(process_current(), &wanted);
}
