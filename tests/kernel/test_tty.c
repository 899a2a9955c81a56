/*
 * The line discipline: what a terminal makes of keys, what it shows, and what a read gets. The
 * terminals are of the test's own: what they send is collected.
 */
#include "fs/tty/tty.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "tests/kernel/ktest.h"

#define TEXT_BYTES 512

static char sent[TEXT_BYTES]; /* by the terminal of the running test */
static size_t sent_bytes;

static void collect(const char *text, size_t len)
{
    for (size_t i = 0; i < len && sent_bytes < sizeof(sent) - 1; i++)
        sent[sent_bytes++] = text[i];
    sent[sent_bytes] = '\0';
}

static struct tty *new_tty(void)
{
    struct tty *tty = kzalloc(sizeof(*tty));

    if (tty)
        tty_init(tty, 0, collect);
    sent_bytes = 0;
    sent[0] = '\0';
    return tty;
}

static void type(struct tty *tty, const char *keys)
{
    tty_receive_now(tty, (const u8 *)keys, strlen(keys));
}

static char got[TEXT_BYTES];

/* One read of up to len bytes, as a string. */
static const char *take(struct tty *tty, size_t len)
{
    bool line_ended;
    size_t n;

    mutex_lock(&tty->lock);
    n = tty_take_locked(tty, got, MIN(len, sizeof(got) - 1), &line_ended);
    mutex_unlock(&tty->lock);
    got[n] = '\0';
    return got;
}

static bool has_input(struct tty *tty)
{
    bool has;

    mutex_lock(&tty->lock);
    has = tty_has_input_locked(tty);
    mutex_unlock(&tty->lock);
    return has;
}

KTEST(tty, a_line_is_read_whole_and_only_when_ended)
{
    struct tty *tty = new_tty();

    KASSERT(tty);
    type(tty, "ab");
    KEXPECT(!has_input(tty));
    type(tty, "c\rnext\r");
    KEXPECT_STREQ(take(tty, 100), "abc\n");
    KEXPECT_STREQ(take(tty, 2), "ne");
    KEXPECT_STREQ(take(tty, 100), "xt\n");
    KEXPECT(!has_input(tty));
    KEXPECT_STREQ(sent, "abc\r\nnext\r\n");
    kfree(tty);
}

KTEST(tty, erase_word_erase_and_kill_edit_line_and_screen)
{
    struct tty *tty = new_tty();

    KASSERT(tty);
    type(tty, "abx\x7f\r");
    KEXPECT_STREQ(take(tty, 100), "ab\n");
    KEXPECT_STREQ(sent, "abx\b \b\r\n");
    type(tty, "\x7fone two  \x17x\r");
    KEXPECT_STREQ(take(tty, 100), "one x\n");
    type(tty, "gone\x15kept\r");
    KEXPECT_STREQ(take(tty, 100), "kept\n");
    kfree(tty);
}

KTEST(tty, erasing_takes_back_the_columns_that_were_shown)
{
    struct tty *tty = new_tty();

    KASSERT(tty);
    type(tty, "a\t");
    KEXPECT_EQ(tty->column, 8);
    type(tty, "\x7f");
    KEXPECT_EQ(tty->column, 1);
    type(tty, "\x01\x7f"); /* shown as ^A */
    KEXPECT_EQ(tty->column, 1);
    type(tty, "\xc3\xa4"); /* one character of two bytes */
    KEXPECT_EQ(tty->column, 2);
    type(tty, "\x7f\r");
    KEXPECT_STREQ(take(tty, 100), "a\n");
    kfree(tty);
}

KTEST(tty, end_of_file_ends_a_read_and_is_no_character)
{
    struct tty *tty = new_tty();

    KASSERT(tty);
    type(tty, "\x04");
    KEXPECT(has_input(tty));
    KEXPECT_STREQ(take(tty, 100), "");
    type(tty, "abc\x04");
    KEXPECT_STREQ(take(tty, 3), "abc"); /* takes the mark with it: no end of file follows */
    KEXPECT(!has_input(tty));
    KEXPECT_STREQ(sent, "abc");
    kfree(tty);
}

KTEST(tty, literal_next_takes_away_a_keys_meaning)
{
    struct tty *tty = new_tty();

    KASSERT(tty);
    type(tty, "\x16\x04\x16\x7f\r");
    KEXPECT_STREQ(take(tty, 100), "\x04\x7f\n");
    kfree(tty);
}

KTEST(tty, raw_mode_gives_bytes_as_they_are)
{
    struct tty *tty = new_tty();

    KASSERT(tty);
    mutex_lock(&tty->lock);
    tty->termios.line = 0;
    tty->termios.input = 0;
    tty->termios.output = 0;
    tty_mode_changed_locked(tty);
    mutex_unlock(&tty->lock);
    type(tty, "a\x7f\r\x03\x04");
    KEXPECT(has_input(tty));
    KEXPECT_STREQ(take(tty, 100), "a\x7f\r\x03\x04");
    KEXPECT_STREQ(sent, "");
    kfree(tty);
}

KTEST(tty, a_change_of_mode_keeps_what_was_typed)
{
    struct tty *tty = new_tty();

    KASSERT(tty);
    type(tty, "half");
    mutex_lock(&tty->lock);
    tty->termios.line &= ~ICANON;
    tty_mode_changed_locked(tty);
    mutex_unlock(&tty->lock);
    KEXPECT_STREQ(take(tty, 2), "ha");
    mutex_lock(&tty->lock);
    tty->termios.line |= ICANON;
    tty_mode_changed_locked(tty);
    mutex_unlock(&tty->lock);
    KEXPECT_STREQ(take(tty, 100), "lf");
    KEXPECT_EQ(tty->lines, 0);
    kfree(tty);
}

static u32 signalled_group, signal_seen;

static void note_signal(u32 group, u32 signal)
{
    signalled_group = group;
    signal_seen = signal;
}

static u32 session_none(void)
{
    return 0;
}

static const struct tty_jobs noting_jobs = {
    .session = session_none, .group = session_none, .signal_group = note_signal};

KTEST(tty, interrupt_quit_and_suspend_signal_the_foreground_and_drop_the_line)
{
    static const struct {
        const char *key;
        u32 signal;
    } keys[] = {{"\x03", TTY_SIGINT}, {"\x1c", TTY_SIGQUIT}, {"\x1a", TTY_SIGTSTP}};
    const struct tty_jobs *before = tty_jobs;
    struct tty *tty = new_tty();

    KASSERT(tty);
    tty_set_jobs(&noting_jobs);
    tty->foreground = 77;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        signal_seen = signalled_group = 0;
        type(tty, "abc");
        type(tty, keys[i].key);
        KEXPECT_EQ(signal_seen, keys[i].signal);
        KEXPECT_EQ(signalled_group, 77);
        type(tty, "\r");
        KEXPECT_STREQ(take(tty, 100), "\n");
    }
    tty_set_jobs(before);
    kfree(tty);
}

KTEST(tty, a_full_buffer_still_takes_the_end_of_the_line)
{
    struct tty *tty = new_tty();

    KASSERT(tty);
    tty->termios.line &= ~ECHO;
    for (unsigned i = 0; i < TTY_INPUT_CHARACTERS + 100; i++)
        type(tty, "x");
    KEXPECT_EQ(sent[0], (char)0x07); /* the bell, for each that found no room */
    type(tty, "\r");
    KEXPECT(has_input(tty));
    KEXPECT_EQ(tty->head - tty->tail, TTY_INPUT_CHARACTERS);
    kfree(tty);
}

KTEST(tty, stop_holds_output_until_start)
{
    struct tty *tty = new_tty();

    KASSERT(tty);
    type(tty, "\x13");
    KEXPECT(tty->is_stopped);
    type(tty, "a\x11");
    KEXPECT(!tty->is_stopped);
    type(tty, "\r");
    KEXPECT_STREQ(take(tty, 100), "a\n");
    kfree(tty);
}
