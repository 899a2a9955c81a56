/*
 * The two serial ports by their jobs: COM1 carries the kernel's log, COM2 is the console. A panic
 * goes to both. Where COM2 is missing COM1 does both jobs.
 *
 * Lines stay whole: text enters the port's ring in one piece under the port's lock. A writer that
 * may sleep waits for room holding a mutex (first come first served), without the spinlock; a
 * writer that may not sleep makes room by polling and can only come between two lines.
 */
#include "drivers/serial.h"

#include "drivers/devices.h"
#include "kernel/log/log.h"
#include "kernel/sched/mutex.h"
#include "lib/errno.h"
#include "lib/string.h"

static struct uart com1 = {.name = "com1", .port = 0x3f8, .isa_irq = 4};
static struct uart com2 = {.name = "com2", .port = 0x2f8, .isa_irq = 3};
static u8 com1_tx[SERIAL_LOG_RING_BYTES], com1_rx[SERIAL_INPUT_RING_BYTES];
static u8 com2_tx[SERIAL_CONSOLE_RING_BYTES], com2_rx[SERIAL_INPUT_RING_BYTES];

static struct uart *log_port, *console_port; /* set by serial_init_early() */

SLEEP_LOCK_CLASS(console_writer_class, "console writer");
static struct mutex console_writer = MUTEX_INIT(console_writer, &console_writer_class);

static void port_sink_write(struct uart *uart, const char *text, size_t len, bool panicking)
{
    if (panicking)
        uart_write_panic(uart, text, len);
    else
        uart_write(uart, text, len);
}

static void log_sink_write(struct log_sink *sink, const char *text, size_t len, bool panicking)
{
    (void)sink;
    port_sink_write(log_port, text, len, panicking);
}

static void console_sink_write(struct log_sink *sink, const char *text, size_t len, bool panicking)
{
    (void)sink;
    port_sink_write(console_port, text, len, panicking);
}

static struct log_sink log_sink = {.write = log_sink_write};
static struct log_sink console_sink = {.write = console_sink_write, .is_console = true};

static void no_power_off(void)
{
}

void serial_init_early(void)
{
    uart_init(&com1, com1_tx, sizeof(com1_tx), com1_rx, sizeof(com1_rx));
    uart_init(&com2, com2_tx, sizeof(com2_tx), com2_rx, sizeof(com2_rx));
    log_port = com1.is_present ? &com1 : NULL;
    console_port = com2.is_present ? &com2 : log_port;
    if (log_port)
        log_add_sink(&log_sink);
    if (console_port && console_port != log_port)
        log_add_sink(&console_sink);
    machine_end_set_hooks(console_flush, no_power_off);
}

static void serial_start_port(struct uart *uart)
{
    if (!uart->is_present)
        return;
    int error = uart_start_irq(uart);

    if (error)
        log_warn("serial: %s stays polled: error %d", uart->name, error);
}

void serial_init_irq(void)
{
    serial_start_port(&com1);
    serial_start_port(&com2);
    if (console_port && console_port == log_port)
        log_info("serial: no COM2; log and console share COM1");
}

struct uart *serial_console(void)
{
    return console_port;
}

struct uart *serial_log_port(void)
{
    return log_port;
}

/* Length of the first line of the text, its newline included, or of what there is. */
static size_t first_line_bytes(const char *text, size_t len)
{
    const char *newline = memchr(text, '\n', len);

    return newline ? (size_t)(newline - text) + 1 : len;
}

/* Puts one piece in, sleeping for room. The caller has the writer mutex. */
static void console_write_piece(const char *text, size_t len)
{
    struct uart *uart = console_port;

    while (!uart_try_write(uart, text, len))
        WAIT_FOR(&uart->tx_room, ring_space(&uart->tx) >= len || !uart->uses_irq,
                 "room for %lu bytes in the console's buffer", len, 0);
}

void console_write(const char *text, size_t len)
{
    if (!console_port || len == 0)
        return;
    if (!irqs_are_on() || this_cpu()->irq_depth > 0 || !console_port->uses_irq) {
        uart_write(console_port, text, len);
        return;
    }
    mutex_lock(&console_writer);
    while (len > 0) {
        size_t whole = MIN(len, console_port->tx.size_bytes / 2);
        size_t piece = len <= whole ? len : MIN(first_line_bytes(text, len), whole);

        console_write_piece(text, piece);
        text += piece;
        len -= piece;
    }
    mutex_unlock(&console_writer);
}

/* Sleeps until a byte is there. => 0, -EINTR */
static int console_wait_input(struct uart *uart)
{
    struct waiter waiter;
    int error = 0;

    wait_begin(&uart->rx_data, &waiter, "console input", 0, 0);
    wait_may_last(&waiter);
    while (!error && ring_used(&uart->rx) == 0)
        error = wait_sleep_killable(&waiter, 0);
    wait_end(&uart->rx_data, &waiter);
    return error;
}

/* Two readers may wake for the same byte: the one that comes too late waits again. */
ssize_t console_read(char *buf, size_t len, bool wait)
{
    struct uart *uart = console_port;
    size_t n;

    if (!uart || len == 0)
        return 0;
    do {
        int error = wait ? console_wait_input(uart) : 0;

        if (error)
            return error;
        bool were_on = spin_lock_irq(&uart->lock);

        n = ring_read(&uart->rx, buf, len);
        spin_unlock_irq(&uart->lock, were_on);
    } while (wait && n == 0);
    return (ssize_t)n;
}

void console_set_input(void (*receive)(u8 byte))
{
    if (console_port)
        console_port->receive = receive;
}

/* In a panic the locks may never be let go; else they keep the lines of other CPUs whole. */
void console_flush(void)
{
    bool with_lock = !panic_in_progress();

    if (log_port)
        uart_drain(log_port, with_lock);
    if (console_port && console_port != log_port)
        uart_drain(console_port, with_lock);
}

int serial_loopback_start(void)
{
    if (!console_port || console_port == log_port || !console_port->uses_irq)
        return -ENODEV;
    uart_set_loopback(console_port, true);
    return 0;
}

void serial_loopback_stop(void)
{
    uart_set_loopback(console_port, false);
}
