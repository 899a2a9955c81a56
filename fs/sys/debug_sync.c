/*
 * /sys/kernel/debug/faultline/sync: sync points, in words. See kernel/sched/sync_point.h.
 *
 *     park NAME PID|*    the next time that thread PID, or anybody but the writer, comes by NAME, it stays there
 *     wait NAME          until somebody is parked there
 *     go NAME            he goes on; or nobody will park there any more
 *
 * A parked thread that is killed goes on at once.
 */
#include "fs/sys/debug_file.h"
#include "kernel/sched/sync_point.h"
#include "lib/errno.h"
#include "lib/string.h"

/* What is not there is a wrong word. */
static int word_error(int error)
{
    return error == -ENOENT ? -EINVAL : error;
}

static int run_park(const struct debug_words *words)
{
    u64 pid = 0;

    if (strcmp(words->word[2], "*") != 0 &&
        (!debug_number(words->word[2], &pid) || !pid || pid > ~0u))
        return -EINVAL;
    return word_error(sync_point_arm_for_program(words->word[1], pid));
}

static int run_wait(const struct debug_words *words)
{
    return word_error(sync_point_wait_for_program(words->word[1]));
}

static int run_go(const struct debug_words *words)
{
    return word_error(sync_point_go_for_program(words->word[1]));
}

static void show(struct text_out *out)
{
    static const char *const states[] = {"off", "armed", "parked"};
    u32 pid = 0;

    for (const char *name = NULL; (name = sync_point_next_name(name)) != NULL;) {
        enum sync_point_state state = sync_point_state_for_program(name, &pid);

        text_out_put(out, "%s %s", name, states[state]);
        if (state != SYNC_POINT_OFF && pid)
            text_out_put(out, " %u", pid);
        else if (state == SYNC_POINT_ARMED)
            text_out_put(out, " *");
        text_out_put(out, "\n");
    }
}

static const struct debug_command commands[] = {
    {"park NAME PID|*, NAME as a line of this file shows it", 3, 3, run_park},
    {"wait NAME of a point that is armed", 2, 2, run_wait},
    {"go NAME of a point that is armed", 2, 2, run_go},
};

struct debug_file debug_sync_file = {
    .name = "sync",
    .commands = commands,
    .n_commands = ARRAY_SIZE(commands),
    .show = show,
    .undo = sync_point_reset_for_programs,
};
