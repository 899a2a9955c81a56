/*
 * What comes in: one byte after the other through the line discipline, in the order of POSIX's
 * general terminal interface: flow control, signals, line ends, editing, and into the buffer.
 *
 * In canonical mode the last line, [committed, head), can still be edited and not be read. In raw
 * mode committed == head always.
 */
#include "fs/tty/tty.h"

#include "lib/string.h"

#define BELL "\a"

static bool has(const struct tty *tty, u32 line_flag)
{
    return tty->termios.line & line_flag;
}

static bool is_canonical(const struct tty *tty)
{
    return has(tty, ICANON);
}

/* Is c the character with that job? */
static bool is_key(const struct tty *tty, enum termios_control job, u8 c)
{
    return tty->termios.control[job] != CONTROL_NONE && tty->termios.control[job] == c;
}

static u16 *entry_at(struct tty *tty, u32 position)
{
    return &tty->input[position % TTY_INPUT_CHARACTERS];
}

/* ---- The buffer ---- */

static u32 used(const struct tty *tty)
{
    return tty->head - tty->tail;
}

/* One place is kept for the end of the line, so that a full buffer can be read. */
static bool has_room(const struct tty *tty, u16 entry)
{
    u32 kept = is_canonical(tty) && !(entry & TTY_LINE_END) ? 1 : 0;

    return used(tty) + kept < TTY_INPUT_CHARACTERS;
}

static bool append(struct tty *tty, u16 entry)
{
    if (!has_room(tty, entry)) {
        if (tty->termios.input & IMAXBEL)
            tty_send_raw_locked(tty, BELL);
        return false;
    }
    *entry_at(tty, tty->head++) = entry;
    if (entry & TTY_LINE_END)
        tty->lines++;
    if (entry & TTY_LINE_END || !is_canonical(tty))
        tty->committed = tty->head;
    return true;
}

u32 tty_readable_locked(const struct tty *tty)
{
    return tty->committed - tty->tail;
}

bool tty_has_input_locked(const struct tty *tty)
{
    return is_canonical(tty) ? tty->lines > 0 : tty_readable_locked(tty) > 0;
}

void tty_discard_input_locked(struct tty *tty)
{
    tty->tail = tty->committed = tty->head;
    tty->lines = 0;
    tty->next_is_literal = false;
}

/* A line typed half becomes readable in raw mode; on the way back what waits stays readable. */
void tty_mode_changed_locked(struct tty *tty)
{
    tty->committed = tty->head;
    tty->next_is_literal = false;
    if (is_canonical(tty) && used(tty) > 0 && !(*entry_at(tty, tty->head - 1) & TTY_LINE_END)) {
        *entry_at(tty, tty->head - 1) |= TTY_LINE_END;
        tty->lines++;
    }
}

size_t tty_take_locked(struct tty *tty, char *buf, size_t len, bool *line_ended)
{
    size_t n = 0;

    *line_ended = false;
    while (tty->tail != tty->committed && !*line_ended) {
        u16 entry = *entry_at(tty, tty->tail);

        /* An end of file right behind the last character that fits belongs to this read. */
        if (n == len && !(n > 0 && is_canonical(tty) && entry & TTY_EOF_MARK))
            break;
        tty->tail++;
        if (entry & TTY_LINE_END) {
            tty->lines--;
            *line_ended = is_canonical(tty);
        }
        if (!(entry & TTY_EOF_MARK))
            buf[n++] = (char)entry;
    }
    return n;
}

/* ---- Editing a line ---- */

static void echo(struct tty *tty, u8 c)
{
    if (!has(tty, ECHO) && !(has(tty, ECHONL) && is_canonical(tty) && c == '\n'))
        return;
    if (tty->committed == tty->head)
        tty->line_column = tty->column;
    tty_echo_locked(tty, c);
}

/* The column behind the line as it stands in the buffer. */
static u32 line_end_column(struct tty *tty)
{
    u32 column = tty->line_column;

    for (u32 i = tty->committed; i != tty->head; i++)
        column += tty_echo_width(tty, (u8)*entry_at(tty, i), column);
    return column;
}

static void rub_out(struct tty *tty, u32 columns)
{
    while (columns--)
        tty_output_locked(tty, "\b \b", 3);
}

static u8 last_character(struct tty *tty)
{
    return (u8)*entry_at(tty, tty->head - 1);
}

/* One character off the end of the line: in UTF-8 all its bytes. */
static void erase_character(struct tty *tty)
{
    u32 before = line_end_column(tty);
    u8 c;

    if (tty->committed == tty->head)
        return;
    do {
        c = last_character(tty);
        tty->head--;
    } while (tty->termios.input & IUTF8 && (c & 0xc0) == 0x80 && tty->committed != tty->head);
    if (!has(tty, ECHO))
        return;
    if (has(tty, ECHOE))
        rub_out(tty, before - line_end_column(tty));
    else
        tty_echo_locked(tty, tty->termios.control[VERASE]);
}

static bool is_word_character(u8 c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c >= 0x80;
}

static void erase_word(struct tty *tty)
{
    while (tty->committed != tty->head && !is_word_character(last_character(tty)))
        erase_character(tty);
    while (tty->committed != tty->head && is_word_character(last_character(tty)))
        erase_character(tty);
}

static void kill_line(struct tty *tty)
{
    if (has(tty, ECHOK) && has(tty, ECHOKE) && has(tty, ECHOE)) {
        while (tty->committed != tty->head)
            erase_character(tty);
        return;
    }
    tty->head = tty->committed;
    if (!has(tty, ECHO))
        return;
    tty_echo_locked(tty, tty->termios.control[VKILL]);
    if (has(tty, ECHOK))
        tty_output_locked(tty, "\n", 1);
}

static void reprint(struct tty *tty)
{
    if (!has(tty, ECHO))
        return;
    tty_echo_locked(tty, tty->termios.control[VREPRINT]);
    tty_output_locked(tty, "\n", 1);
    tty->line_column = tty->column;
    for (u32 i = tty->committed; i != tty->head; i++)
        tty_echo_locked(tty, (u8)*entry_at(tty, i));
}

static void literal_follows(struct tty *tty)
{
    tty->next_is_literal = true;
    if (has(tty, ECHO) && has(tty, ECHOCTL))
        tty_send_raw_locked(tty, "^\b"); /* the next character takes its place */
}

/* Keys that edit, and whether they are extensions to POSIX (IEXTEN). */
static const struct {
    enum termios_control job;
    bool is_extension;
    void (*edit)(struct tty *tty);
} edit_keys[] = {
    {VERASE, false, erase_character}, {VKILL, false, kill_line},       {VWERASE, true, erase_word},
    {VREPRINT, true, reprint},        {VLNEXT, true, literal_follows},
};

/* => whether the character was an order to edit */
static bool edit(struct tty *tty, u8 c)
{
    for (size_t i = 0; i < ARRAY_SIZE(edit_keys); i++) {
        if (!is_key(tty, edit_keys[i].job, c) || (edit_keys[i].is_extension && !has(tty, IEXTEN)))
            continue;
        edit_keys[i].edit(tty);
        return true;
    }
    return false;
}

static void canonical(struct tty *tty, u8 c)
{
    bool ends_line =
        c == '\n' || is_key(tty, VEOL, c) || (has(tty, IEXTEN) && is_key(tty, VEOL2, c));

    if (edit(tty, c))
        return;
    if (is_key(tty, VEOF, c)) {
        append(tty, TTY_LINE_END | TTY_EOF_MARK);
        return;
    }
    if (has_room(tty, ends_line ? TTY_LINE_END : 0))
        echo(tty, c);
    append(tty, ends_line ? c | TTY_LINE_END : c);
}

/* ---- Signals and flow ---- */

static const struct {
    enum termios_control job;
    u32 signal;
} signal_keys[] = {{VINTR, TTY_SIGINT}, {VQUIT, TTY_SIGQUIT}, {VSUSP, TTY_SIGTSTP}};

static void start_output(struct tty *tty)
{
    tty->is_stopped = false;
    wait_wake_all(&tty->started);
    wait_wake_all(&tty->readable); /* pollers for writing */
}

/* => whether the character was a key that sends a signal */
static bool send_signal(struct tty *tty, u8 c)
{
    for (size_t i = 0; i < ARRAY_SIZE(signal_keys); i++) {
        if (!is_key(tty, signal_keys[i].job, c))
            continue;
        if (!has(tty, NOFLSH))
            tty_discard_input_locked(tty);
        start_output(tty);
        if (has(tty, ECHO))
            tty_echo_locked(tty, c);
        tty_signal_foreground_locked(tty, signal_keys[i].signal);
        return true;
    }
    return false;
}

/* => whether the character is used up */
static bool flow_control(struct tty *tty, u8 c)
{
    if (!(tty->termios.input & IXON))
        return false;
    if (is_key(tty, VSTART, c)) {
        start_output(tty);
        return true;
    }
    if (is_key(tty, VSTOP, c)) {
        tty->is_stopped = true;
        return true;
    }
    if (tty->is_stopped && tty->termios.input & IXANY)
        start_output(tty);
    return false;
}

/* Line ends as the input flags translate them. => false: the character is dropped */
static bool translate(const struct tty *tty, u8 *c)
{
    u32 flags = tty->termios.input;

    if (*c == '\r' && flags & IGNCR)
        return false;
    if (*c == '\r' && flags & ICRNL)
        *c = '\n';
    else if (*c == '\n' && flags & INLCR)
        *c = '\r';
    return true;
}

static void plain(struct tty *tty, u8 c)
{
    if (has_room(tty, 0))
        echo(tty, c);
    append(tty, c);
}

static void receive(struct tty *tty, u8 c)
{
    if (tty->termios.input & ISTRIP)
        c &= 0x7f;
    if (tty->next_is_literal) {
        tty->next_is_literal = false;
        plain(tty, c);
        return;
    }
    if (flow_control(tty, c) || (has(tty, ISIG) && send_signal(tty, c)) || !translate(tty, &c))
        return;
    if (is_canonical(tty))
        canonical(tty, c);
    else
        plain(tty, c);
}

void tty_receive_now(struct tty *tty, const u8 *bytes, size_t n)
{
    mutex_lock(&tty->lock);
    for (size_t i = 0; i < n; i++)
        receive(tty, bytes[i]);
    if (tty_has_input_locked(tty))
        wait_wake_all(&tty->readable);
    mutex_unlock(&tty->lock);
}
