/*
 * capget and capset: everybody is root and may do everything; giving something up is accepted and has no effect
 * (capget(2)).
 */
#include "kernel/syscall/syscall.h"

#define CAP_LAST  40 /* CAP_CHECKPOINT_RESTORE */
#define CAP_ALL   ((1ul << (CAP_LAST + 1)) - 1)
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

static const struct cap_words all[2] = {{(u32)CAP_ALL, (u32)CAP_ALL, 0},
                                        {CAP_ALL >> 32, CAP_ALL >> 32, 0}};

static bool exists(s32 pid)
{
    struct process *process = pid ? process_find(pid) : NULL;
    if (process)
        process_put(process);
    return !pid || process;
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
    struct cap_header header;
    unsigned words;

    int error = read_header(a[0], &header, &words);
    if (error)
        return error == -EINVAL && !a[1] ? 0 : error; /* asked for the version alone */
    if (header.pid < 0)
        return -EINVAL;
    if (!exists(header.pid))
        return -ESRCH;
    return a[1] && copy_to_user(a[1], all, words * sizeof(all[0])) ? -EFAULT : 0;
}

/* capset(header, data): only for oneself, and nothing that does not exist. */
s64 sys_capset(const u64 *a)
{
    struct cap_header header;
    struct cap_words wanted[2] = {{0}};
    unsigned words;

    int error = read_header(a[0], &header, &words);
    if (error)
        return error;
    if (header.pid && (u32)header.pid != process_current()->pid)
        return -EPERM;
    if (copy_from_user(wanted, a[1], words * sizeof(wanted[0])))
        return -EFAULT;
    for (unsigned i = 0; i < words; i++) {
        if ((wanted[i].permitted & ~all[i].permitted) ||
            (wanted[i].effective & ~wanted[i].permitted))
            return -EPERM;
    }
    return 0;
}
