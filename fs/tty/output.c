/*
 * What goes out: the translations of OPOST, the echo of what is typed, and the column in which the
 * cursor stands, which erasing a tab must know.
 */
#include "fs/tty/tty.h"

#include "lib/string.h"

#define TAB_COLUMNS 8
#define PIECE_BYTES 256
#define DELETE      0x7f
#define CARET_FLIP  0x40 /* ^A is 1, A is 0x41; DEL is ^? */

/* Bytes on their way to the port, sent when the piece is full. */
struct piece {
    struct tty *tty;
    size_t n;
    char bytes[PIECE_BYTES];
};

static void flush(struct piece *piece)
{
    if (piece->n)
        piece->tty->send(piece->bytes, piece->n);
    piece->n = 0;
}

static void put(struct piece *piece, char c)
{
    if (piece->n == sizeof(piece->bytes))
        flush(piece);
    piece->bytes[piece->n++] = c;
}

static bool is_continuation(u8 c)
{
    return (c & 0xc0) == 0x80; /* of a character in UTF-8 */
}

static bool is_control(u8 c)
{
    return c < ' ' || c == DELETE;
}

static void move_cursor(struct tty *tty, u8 c)
{
    switch (c) {
    case '\r': tty->column = 0; break;
    case '\b': tty->column -= tty->column > 0; break;
    case '\t': tty->column += TAB_COLUMNS - tty->column % TAB_COLUMNS; break;
    default:
        if (!is_control(c) && !(tty->termios.input & IUTF8 && is_continuation(c)))
            tty->column++;
    }
}

static void put_newline(struct piece *piece)
{
    struct tty *tty = piece->tty;

    if (tty->termios.output & ONLCR)
        put(piece, '\r');
    put(piece, '\n');
    if (tty->termios.output & (ONLCR | ONLRET))
        tty->column = 0;
}

static void put_processed(struct piece *piece, u8 c)
{
    struct tty *tty = piece->tty;
    u32 flags = tty->termios.output;

    if (c == '\r' && flags & ONOCR && tty->column == 0)
        return;
    if (c == '\r' && flags & OCRNL)
        c = '\n';
    if (c == '\n') {
        put_newline(piece);
        return;
    }
    if (c == '\t' && (flags & TABDLY) == XTABS) {
        do {
            put(piece, ' ');
            tty->column++;
        } while (tty->column % TAB_COLUMNS);
        return;
    }
    put(piece, c);
    move_cursor(tty, c);
}

void tty_output_locked(struct tty *tty, const char *text, size_t len)
{
    struct piece piece = {.tty = tty, .n = 0};

    if (!(tty->termios.output & OPOST)) {
        if (len)
            tty->send(text, len);
        return;
    }
    for (size_t i = 0; i < len; i++)
        put_processed(&piece, text[i]);
    flush(&piece);
}

void tty_send_raw_locked(struct tty *tty, const char *text)
{
    tty->send(text, strlen(text));
}

/* Is it shown as ^X? Tabs and line ends are shown as what they are. */
static bool is_shown_with_caret(const struct tty *tty, u8 c)
{
    return tty->termios.line & ECHOCTL && is_control(c) && c != '\t' && c != '\n';
}

void tty_echo_locked(struct tty *tty, u8 c)
{
    char shown[2] = {'^', c ^ CARET_FLIP};

    if (is_shown_with_caret(tty, c))
        tty_output_locked(tty, shown, sizeof(shown));
    else
        tty_output_locked(tty, (char *)&c, 1);
}

u32 tty_echo_width(const struct tty *tty, u8 c, u32 column)
{
    if (c == '\t')
        return TAB_COLUMNS - column % TAB_COLUMNS;
    if (is_shown_with_caret(tty, c))
        return 2;
    if (is_control(c) || (tty->termios.input & IUTF8 && is_continuation(c)))
        return 0;
    return 1;
}
