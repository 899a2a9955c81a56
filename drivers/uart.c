/*
 * The 16550: see drivers/uart.h for who may call what.
 *
 * Sending by interrupt: whoever fills the ring switches the "transmitter empty" interrupt on, the
 * handler feeds 16 bytes at a time and switches it off when the ring is empty. All feeding is done
 * by the handler or under polling, never by the writer, so in loopback the handler always empties
 * the receiver before it sends more.
 */
#include "drivers/uart.h"

#include "drivers/devices.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/trap.h"
#include "lib/errno.h"

enum uart_register {
    UART_DATA = 0,         /* divisor low while UART_LINE_DIVISOR is set */
    UART_IRQ_ENABLE = 1,   /* divisor high */
    UART_IRQ_ID = 2,       /* read */
    UART_FIFO_CONTROL = 2, /* write */
    UART_LINE_CONTROL = 3,
    UART_MODEM_CONTROL = 4,
    UART_LINE_STATUS = 5,
    UART_MODEM_STATUS = 6,
    UART_SCRATCH = 7,
};

#define UART_IRQ_RECEIVED    0x01
#define UART_IRQ_CAN_SEND    0x02
#define UART_IRQ_NONE        0x01 /* in UART_IRQ_ID: nothing is pending */
#define UART_FIFO_ENABLE     0x07 /* on, both cleared, receive trigger at 1 byte */
#define UART_LINE_8N1        0x03
#define UART_LINE_DIVISOR    0x80
#define UART_MODEM_READY     0x0b /* DTR, RTS, OUT2 (which lets the interrupt out) */
#define UART_MODEM_LOOPBACK  0x10
#define UART_STATUS_DATA     0x01
#define UART_STATUS_CAN_SEND 0x20
#define UART_STATUS_IDLE     0x40 /* FIFO and shift register empty */
#define UART_DIVISOR_115200  1
#define UART_FIFO_BYTES      16

#define ROUNDS_PER_IRQ 8             /* then other interrupts get a turn */
#define STUCK_NS       10000000000ul /* a transmitter that takes nothing for 10 s is broken: drop */
#define DETECT_POLLS   10000

LOCK_CLASS(uart_lock_class, "uart");

static u8 uart_in(const struct uart *uart, enum uart_register reg)
{
    return port_in8((u16)(uart->port + reg));
}

static void uart_out(const struct uart *uart, enum uart_register reg, u8 value)
{
    port_out8((u16)(uart->port + reg), value);
}

/* A scratch register that keeps two patterns, and a byte that comes back in loopback. */
static bool uart_detect(const struct uart *uart)
{
    static const u8 patterns[] = {0x5a, 0xa5};

    for (unsigned i = 0; i < ARRAY_SIZE(patterns); i++) {
        uart_out(uart, UART_SCRATCH, patterns[i]);
        if (uart_in(uart, UART_SCRATCH) != patterns[i])
            return false;
    }
    uart_out(uart, UART_MODEM_CONTROL, UART_MODEM_LOOPBACK);
    uart_out(uart, UART_FIFO_CONTROL, UART_FIFO_ENABLE);
    uart_out(uart, UART_DATA, patterns[0]);
    for (unsigned i = 0; i < DETECT_POLLS; i++) {
        if (uart_in(uart, UART_LINE_STATUS) & UART_STATUS_DATA)
            return uart_in(uart, UART_DATA) == patterns[0];
        cpu_pause();
    }
    return false;
}

void uart_init(struct uart *uart, void *tx_data, u32 tx_bytes, void *rx_data, u32 rx_bytes)
{
    spin_init(&uart->lock, &uart_lock_class);
    ring_init(&uart->tx, tx_data, tx_bytes);
    ring_init(&uart->rx, rx_data, rx_bytes);
    wait_queue_init(&uart->tx_room);
    wait_queue_init(&uart->rx_data);

    uart_out(uart, UART_IRQ_ENABLE, 0);
    uart_out(uart, UART_LINE_CONTROL, UART_LINE_DIVISOR);
    uart_out(uart, UART_DATA, UART_DIVISOR_115200);
    uart_out(uart, UART_IRQ_ENABLE, 0);
    uart_out(uart, UART_LINE_CONTROL, UART_LINE_8N1);
    uart->is_present = uart_detect(uart);
    uart_out(uart, UART_MODEM_CONTROL, UART_MODEM_READY);
    uart_out(uart, UART_FIFO_CONTROL, UART_FIFO_ENABLE);
}

/* ---- Sending ------------------------------------------------------------------------------- */

/* Feeds the chip, if it takes bytes, with as many as its FIFO holds. => whether it took any */
static bool uart_feed(struct uart *uart)
{
    u8 byte;
    unsigned n = 0;

    if (!(uart_in(uart, UART_LINE_STATUS) & UART_STATUS_CAN_SEND))
        return false;
    while (n < UART_FIFO_BYTES && ring_get(&uart->tx, &byte)) {
        uart_out(uart, UART_DATA, byte);
        n++;
    }
    return n > 0;
}

/* Polls until the ring has room for `bytes` (the ring's size: until it is empty). */
static void uart_poll_room(struct uart *uart, u32 bytes)
{
    u64 since = clock_ns();

    while (ring_space(&uart->tx) < bytes) {
        if (uart_feed(uart)) {
            since = clock_ns();
        } else if (clock_ns() - since > STUCK_NS) {
            ring_discard(&uart->tx);
            return;
        } else {
            cpu_pause();
        }
    }
}

static void uart_enable_irqs_locked(struct uart *uart, u8 which)
{
    if (uart->irq_enable != which) {
        uart->irq_enable = which;
        uart_out(uart, UART_IRQ_ENABLE, which);
    }
}

/* The ring holds something new: it goes by interrupt, or right now. */
static void uart_start_sending_locked(struct uart *uart)
{
    if (uart->uses_irq)
        uart_enable_irqs_locked(uart, UART_IRQ_RECEIVED | UART_IRQ_CAN_SEND);
    else
        uart_poll_room(uart, uart->tx.size_bytes);
}

void uart_write(struct uart *uart, const char *text, size_t len)
{
    if (!uart->is_present)
        return;
    bool were_on = spin_lock_irq(&uart->lock);

    while (len > 0) {
        u32 piece = (u32)MIN(len, uart->tx.size_bytes);

        uart_poll_room(uart, piece);
        ring_write(&uart->tx, text, piece);
        uart_start_sending_locked(uart);
        text += piece;
        len -= piece;
    }
    spin_unlock_irq(&uart->lock, were_on);
}

bool uart_try_write(struct uart *uart, const char *text, size_t len)
{
    if (!uart->is_present)
        return true;
    bool were_on = spin_lock_irq(&uart->lock);
    bool fits = ring_space(&uart->tx) >= len;

    if (fits) {
        ring_write(&uart->tx, text, len);
        uart_start_sending_locked(uart);
    }
    spin_unlock_irq(&uart->lock, were_on);
    return fits;
}

void uart_drain(struct uart *uart, bool with_lock)
{
    if (!uart->is_present)
        return;
    bool were_on = with_lock && spin_lock_irq(&uart->lock);
    u64 since = clock_ns();

    uart_poll_room(uart, uart->tx.size_bytes);
    while (!(uart_in(uart, UART_LINE_STATUS) & UART_STATUS_IDLE) && clock_ns() - since < STUCK_NS)
        cpu_pause();
    if (with_lock)
        spin_unlock_irq(&uart->lock, were_on);
}

/*
 * Whoever panics may have interrupted the handler or a writer on this CPU, or stopped them on
 * another: the lock may never be let go. What they can have left behind is a byte sent twice, so
 * going on without it is safe.
 */
void uart_write_panic(struct uart *uart, const char *text, size_t len)
{
    if (!uart->is_present)
        return;
    uart->uses_irq = false;
    uart_out(uart, UART_IRQ_ENABLE, 0);
    while (len > 0) {
        uart_poll_room(uart, uart->tx.size_bytes);
        size_t piece = ring_write(&uart->tx, text, len);

        text += piece;
        len -= piece;
    }
    uart_drain(uart, false);
}

/* ---- Interrupts ---------------------------------------------------------------------------- */

static bool uart_receive_all(struct uart *uart)
{
    bool got_any = false;

    while (uart_in(uart, UART_LINE_STATUS) & UART_STATUS_DATA) {
        u8 byte = uart_in(uart, UART_DATA);

        if (uart->receive && !uart->is_loopback) {
            uart->receive(byte);
        } else {
            if (!ring_put(&uart->rx, byte))
                uart->rx_lost++;
            got_any = true;
        }
    }
    return got_any;
}

static void uart_send_some(struct uart *uart)
{
    spin_lock(&uart->lock);
    if (ring_used(&uart->tx) > 0)
        uart_feed(uart);
    else if (uart->uses_irq)
        uart_enable_irqs_locked(uart, UART_IRQ_RECEIVED);
    spin_unlock(&uart->lock);
}

/*
 * The line is edge-triggered: it rises once and stays up until nothing is pending. Leaving with
 * something pending would be the last interrupt ever, so when the rounds are used up the enable
 * register is cleared and set again, which gives a new edge.
 */
static void uart_interrupt(void *context)
{
    struct uart *uart = context;
    unsigned round = 0;
    bool got_any = false;

    uart->irqs++;
    while (round < ROUNDS_PER_IRQ && !(uart_in(uart, UART_IRQ_ID) & UART_IRQ_NONE)) {
        got_any |= uart_receive_all(uart);
        uart_send_some(uart);
        round++;
    }
    if (round == ROUNDS_PER_IRQ) {
        spin_lock(&uart->lock);
        uart_out(uart, UART_IRQ_ENABLE, 0);
        uart_out(uart, UART_IRQ_ENABLE, uart->irq_enable);
        spin_unlock(&uart->lock);
    }
    if (got_any)
        wait_wake_all(&uart->rx_data);
    if (ring_space(&uart->tx) >= uart->tx.size_bytes / 2)
        wait_wake_all(&uart->tx_room);
}

int uart_start_irq(struct uart *uart)
{
    if (!uart->is_present || uart->uses_irq)
        return uart->is_present ? 0 : -ENODEV;
    int vector = irq_vector_alloc(uart->name, uart_interrupt, uart);

    if (vector < 0)
        return vector;
    int error = ioapic_route_isa(uart->isa_irq, (u8)vector);

    if (error) {
        irq_vector_free(vector);
        return error;
    }
    bool were_on = spin_lock_irq(&uart->lock);

    uart->uses_irq = true;
    uart_in(uart, UART_IRQ_ID); /* forget what was pending from before */
    uart_enable_irqs_locked(uart, UART_IRQ_RECEIVED);
    spin_unlock_irq(&uart->lock, were_on);
    return 0;
}

void uart_set_loopback(struct uart *uart, bool on)
{
    uart_drain(uart, true);
    bool were_on = spin_lock_irq(&uart->lock);

    ring_discard(&uart->rx);
    uart->is_loopback = on;
    uart_out(uart, UART_MODEM_CONTROL,
             on ? UART_MODEM_READY | UART_MODEM_LOOPBACK : UART_MODEM_READY);
    spin_unlock_irq(&uart->lock, were_on);
}
