/*
 * How the machine ends. The status goes over a channel of its own (a debugcon port that QEMU writes
 * to a file): QEMU's exit status has too few values, and a triple fault looks like a power-off.
 * Then three ways to switch off, each for the case that the one before is not there.
 */
#include "kernel/cpu/cpu.h"
#include "kernel/log/log.h"
#include "lib/format.h"

#define DEBUGCON_PORT    0xe9
#define DEBUG_EXIT_PORT  0xf4
#define DEBUG_EXIT_CLEAN 0
#define DEBUG_EXIT_PANIC 1

/* Set at boot by drivers. */
static void (*flush_hook)(void), (*power_off_hook)(void);

void machine_end_set_hooks(void (*flush)(void), void (*power_off)(void))
{
    flush_hook = flush;
    power_off_hook = power_off;
}

static void send_status(enum machine_end kind, int status)
{
    char line[32];

    switch (kind) {
    case MACHINE_EXIT: format_to(line, sizeof line, "exit %d\n", status); break;
    case MACHINE_POWEROFF: format_to(line, sizeof line, "poweroff\n"); break;
    case MACHINE_PANIC: format_to(line, sizeof line, "panic\n"); break;
    }
    for (const char *c = line; *c; c++)
        port_out8(DEBUGCON_PORT, (u8)*c);
}

void machine_end(enum machine_end kind, int status)
{
    if (kind != MACHINE_PANIC && flush_hook) /* a panic has written everything itself */
        flush_hook();
    irq_disable();
    send_status(kind, status);
    port_out32(DEBUG_EXIT_PORT, kind == MACHINE_PANIC ? DEBUG_EXIT_PANIC : DEBUG_EXIT_CLEAN);
    if (kind != MACHINE_PANIC && power_off_hook)
        power_off_hook();
    for (;;)
        __asm__ volatile("cli; hlt");
}
