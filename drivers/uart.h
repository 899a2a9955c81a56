/*
 * One 16550 serial port: sending from a ring by interrupts or by polling, receiving by interrupts.
 *
 * The sending ring is filled and emptied under `lock` (interrupts off), so a piece of text put in
 * at once leaves as one piece. The lock is a leaf: nothing is taken, logged or woken while it is
 * held. Whoever may not wait for interrupts (interrupts off, in an interrupt, ring full) makes room
 * by polling under the same lock; a panic polls without it.
 * Source: National Semiconductor PC16550D data sheet.
 */
#ifndef DRIVERS_UART_H
#define DRIVERS_UART_H

#include "kernel/sched/wait.h"
#include "kernel/sync/spin.h"
#include "lib/ring.h"

struct uart {
    const char *name;
    u16 port;
    u8 isa_irq;
    bool is_present;
    bool uses_irq;    /* set once, when the interrupt is routed */
    bool is_loopback; /* tests: sent bytes come back as received ones, nothing leaves */
    u8 irq_enable;    /* what the IER holds; guarded by lock */
    struct spinlock lock;
    struct ring tx;
    struct wait_queue tx_room; /* sleepers that wait for room in tx */
    struct ring rx;            /* filled by the interrupt handler alone */
    struct wait_queue rx_data;
    void (*receive)(u8 byte); /* takes the bytes instead of rx; interrupt context */
    u64 rx_lost;              /* bytes that found rx full; interrupt handler writes */
    u64 irqs;                 /* interrupts served */
};

/*
 * Rings in the given memory (sizes: powers of two). => Detects the chip and sets 115200 8N1, FIFO
 * on, interrupts off.
 */
void uart_init(struct uart *uart, void *tx_data, u32 tx_bytes, void *rx_data, u32 rx_bytes);

/* Vector allocated, routed and switched on. => 0, or the error (then the port stays polled) */
MUST_CHECK int uart_start_irq(struct uart *uart);

/*
 * Puts [text, len) into the sending ring in one piece where it fits (in pieces of the ring's size
 * where not), polling for room. Any context but a panic. Never loses a byte of a port that is
 * present.
 */
void uart_write(struct uart *uart, const char *text, size_t len);
/*
 * As uart_write, but gives up at once where the ring has no room for all of it. => whether it was
 * written
 */
bool uart_try_write(struct uart *uart, const char *text, size_t len);

/* Sends what the ring holds and waits for the last bit, by polling. with_lock false: for panics. */
void uart_drain(struct uart *uart, bool with_lock);
/*
 * Drains, then sends the text, polling, without a lock; the port is polled from then on. For
 * panics.
 */
void uart_write_panic(struct uart *uart, const char *text, size_t len);

/*
 * Diagnostic loopback of the chip on or off, after everything was sent and what was received was
 * dropped. For tests.
 */
void uart_set_loopback(struct uart *uart, bool on);

#endif
