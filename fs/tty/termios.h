/*
 * The terminal interface of Linux x86-64, as programs see it: struct termios of TCGETS, its bits,
 * and the numbers of the ioctl requests. Source: termios(3), ioctl_tty(2).
 */
#ifndef FS_TTY_TERMIOS_H
#define FS_TTY_TERMIOS_H

#include "lib/types.h"

/* Places in control[] */
enum termios_control {
    VINTR,
    VQUIT,
    VERASE,
    VKILL,
    VEOF,
    VTIME,
    VMIN,
    VSWTC,
    VSTART,
    VSTOP,
    VSUSP,
    VEOL,
    VREPRINT,
    VDISCARD,
    VWERASE,
    VLNEXT,
    VEOL2,
    TERMIOS_CONTROLS = 19,
};
#define CONTROL_NONE 0 /* in control[]: no character has this job */

/* input */
#define ISTRIP  0000040u
#define INLCR   0000100u
#define IGNCR   0000200u
#define ICRNL   0000400u
#define IXON    0002000u
#define IXANY   0004000u
#define IMAXBEL 0020000u
#define IUTF8   0040000u

/* output */
#define OPOST  0000001u
#define ONLCR  0000004u
#define OCRNL  0000010u
#define ONOCR  0000020u
#define ONLRET 0000040u
#define TABDLY 0014000u
#define XTABS  0014000u /* tabs go out as blanks */

/* line */
#define ISIG    0000001u
#define ICANON  0000002u
#define ECHO    0000010u
#define ECHOE   0000020u
#define ECHOK   0000040u
#define ECHONL  0000100u
#define NOFLSH  0000200u
#define TOSTOP  0000400u
#define ECHOCTL 0001000u
#define ECHOKE  0004000u
#define IEXTEN  0100000u

/* control: 115200 baud, 8 bits, receiver on */
#define B115200 0010002u
#define CS8     0000060u
#define CREAD   0000200u
#define HUPCL   0002000u

/* What TCGETS and TCSETS carry. */
struct termios {
    u32 input, output, control_modes, line;
    u8 discipline;
    u8 control[TERMIOS_CONTROLS];
};
_Static_assert(sizeof(struct termios) == 36, "struct termios of the kernel interface");

struct winsize {
    u16 rows, columns, x_pixels, y_pixels;
};
_Static_assert(sizeof(struct winsize) == 8, "struct winsize");

#define TCGETS     0x5401
#define TCSETS     0x5402
#define TCSETSW    0x5403
#define TCSETSF    0x5404
#define TCSBRK     0x5409
#define TCXONC     0x540a
#define TCFLSH     0x540b
#define TIOCSCTTY  0x540e
#define TIOCGPGRP  0x540f
#define TIOCSPGRP  0x5410
#define TIOCOUTQ   0x5411
#define TIOCGWINSZ 0x5413
#define TIOCSWINSZ 0x5414
#define FIONREAD   0x541b
#define TIOCNOTTY  0x5422
#define TCSBRKP    0x5425
#define TIOCGSID   0x5429

/* argument of TCFLSH */
enum { TCIFLUSH, TCOFLUSH, TCIOFLUSH };
/* argument of TCXONC */
enum { TCOOFF, TCOON, TCIOFF, TCION };

#endif
