/*
 * What tests may see of the console and the log port behind devices.h.
 */
#ifndef DRIVERS_SERIAL_H
#define DRIVERS_SERIAL_H

#include "drivers/uart.h"

#define SERIAL_LOG_RING_BYTES     65536
#define SERIAL_CONSOLE_RING_BYTES 8192
#define SERIAL_INPUT_RING_BYTES   16384

struct uart *serial_console(void);  /* COM2, or COM1 if alone; NULL without both */
struct uart *serial_log_port(void); /* COM1; NULL if missing */

/*
 * Runs between them: everything written to the console comes back through its interrupt as input
 * for console_read, and nothing leaves. => 0; -ENODEV where console and log share a port or it is
 * polled
 */
MUST_CHECK int serial_loopback_start(void);
void serial_loopback_stop(void);

#endif
