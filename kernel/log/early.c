/*
 * The way out for text before there is a driver: COM1, polled, with a bound on the wait, so that a
 * machine without the port goes on.
 * Source: National Semiconductor PC16550D, 8.0 (registers).
 */
#include "kernel/cpu/cpu.h"
#include "kernel/log/internal.h"

#define COM1_DATA            0x3f8
#define COM1_LINE_STATUS     (COM1_DATA + 5)
#define LINE_STATUS_CAN_SEND 0x20
#define MAX_POLLS            100000

static void put_byte(u8 byte)
{
    for (int polls = 0; polls < MAX_POLLS; polls++) {
        if (port_in8(COM1_LINE_STATUS) & LINE_STATUS_CAN_SEND)
            break;
        cpu_pause();
    }
    port_out8(COM1_DATA, byte);
}

void early_write(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n')
            put_byte('\r');
        put_byte((u8)text[i]);
    }
}
