/*
 * reboot(2): the end of the machine as a program asks for it. QEMU runs with -no-reboot, so a
 * restart ends it too.
 */
#include "drivers/devices.h"
#include "kernel/log/log.h"
#include "kernel/syscall/syscall.h"

#define REBOOT_MAGIC1 0xfee1deadu
static const u32 second_magic[] = {672274793, 85072278, 369367448, 537993216};

enum reboot_command {
    REBOOT_RESTART = 0x01234567,
    REBOOT_HALT = 0xcdef0123,
    REBOOT_POWER_OFF = 0x4321fedc,
    REBOOT_CAD_ON = 0x89abcdef, /* what Ctrl-Alt-Del does: there is no such key here */
    REBOOT_CAD_OFF = 0,
};

static bool is_second_magic(u32 magic)
{
    for (unsigned i = 0; i < ARRAY_SIZE(second_magic); i++)
        if (second_magic[i] == magic)
            return true;
    return false;
}

s64 sys_reboot(const u64 *a)
{
    if ((u32)a[0] != REBOOT_MAGIC1 || !is_second_magic(a[1]))
        return -EINVAL;
    switch ((u32)a[2]) {
    case REBOOT_RESTART:
    case REBOOT_HALT:
    case REBOOT_POWER_OFF:
        log_info("process %u (%s) ends the machine", process_current()->pid,
                 process_current()->name);
        machine_end(MACHINE_POWEROFF, 0);
    case REBOOT_CAD_ON:
    case REBOOT_CAD_OFF: return 0;
    default: return -EINVAL;
    }
}
