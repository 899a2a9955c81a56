/*
 * The date, from the real-time clock in CMOS memory; read once at boot.
 */
#include "drivers/acpi.h"
#include "drivers/timer.h"
#include "kernel/cpu/cpu.h"
#include "lib/string.h"

#define CMOS_INDEX   0x70
#define CMOS_DATA    0x71
#define UPDATE_POLLS 100000 /* an update takes 2 ms at most */

enum cmos_register {
    CMOS_SECOND = 0,
    CMOS_MINUTE = 2,
    CMOS_HOUR = 4,
    CMOS_DAY = 7,
    CMOS_MONTH = 8,
    CMOS_YEAR = 9,
    CMOS_STATUS_A = 10,
    CMOS_STATUS_B = 11,
};

#define STATUS_A_UPDATING      0x80
#define STATUS_A_DIVIDER       0x70
#define STATUS_A_DIVIDER_RESET 0x60 /* the clock stands still */
#define STATUS_B_IRQS          0x70 /* periodic, alarm, update-ended */
#define STATUS_B_BINARY        0x04
#define STATUS_B_24_HOURS      0x02
#define HOUR_PM                0x80 /* in 12-hour mode */

struct rtc_reading {
    u8 second, minute, hour, day, month, year, century;
};

static u8 cmos_read(u8 reg)
{
    port_out8(CMOS_INDEX, reg);
    return port_in8(CMOS_DATA);
}

static void cmos_write(u8 reg, u8 value)
{
    port_out8(CMOS_INDEX, reg);
    port_out8(CMOS_DATA, value);
}

void rtc_silence(bool stop)
{
    cmos_write(CMOS_STATUS_B, cmos_read(CMOS_STATUS_B) & (u8)~STATUS_B_IRQS);
    if (stop)
        cmos_write(CMOS_STATUS_A,
                   (cmos_read(CMOS_STATUS_A) & (u8)~STATUS_A_DIVIDER) | STATUS_A_DIVIDER_RESET);
}

/*
 * Days from the civil calendar: years counted from March, so that the leap day is the last of its
 * year.
 */
static u64 days_since_1970(unsigned year, unsigned month, unsigned day)
{
    enum { DAYS_BEFORE_1970 = 719468 }; /* from 1 March of year 0 */
    u64 y = month <= 2 ? year - 1 : year;
    u64 months_from_march = (month + 9) % 12;
    u64 day_of_year = (153 * months_from_march + 2) / 5 + day - 1;

    return y * 365 + y / 4 - y / 100 + y / 400 + day_of_year - DAYS_BEFORE_1970;
}

u64 rtc_to_epoch(unsigned year, unsigned month, unsigned day, unsigned hour, unsigned minute,
                 unsigned second)
{
    return ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
}

static struct rtc_reading rtc_read_once(void)
{
    u8 century_register = acpi_facts()->fadt.rtc_century;

    for (unsigned i = 0; i < UPDATE_POLLS && cmos_read(CMOS_STATUS_A) & STATUS_A_UPDATING; i++)
        cpu_pause();
    return (struct rtc_reading){
        .second = cmos_read(CMOS_SECOND),
        .minute = cmos_read(CMOS_MINUTE),
        .hour = cmos_read(CMOS_HOUR),
        .day = cmos_read(CMOS_DAY),
        .month = cmos_read(CMOS_MONTH),
        .year = cmos_read(CMOS_YEAR),
        .century = century_register ? cmos_read(century_register) : 0,
    };
}

static bool readings_are_equal(const struct rtc_reading *a, const struct rtc_reading *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static unsigned from_bcd(u8 value)
{
    return (value >> 4) * 10u + (value & 15);
}

u64 rtc_read_epoch(void)
{
    struct rtc_reading r = rtc_read_once(), again = rtc_read_once();
    u8 mode = cmos_read(CMOS_STATUS_B);

    /* An update may begin between the test and the last register: only two equal readings count. */
    for (unsigned i = 0; i < 10 && !readings_are_equal(&r, &again); i++) {
        r = again;
        again = rtc_read_once();
    }
    bool is_pm = !(mode & STATUS_B_24_HOURS) && r.hour & HOUR_PM;
    u8 *fields = (u8 *)&r;

    if (is_pm)
        r.hour &= (u8)~HOUR_PM;
    for (unsigned i = 0; i < sizeof(r) && !(mode & STATUS_B_BINARY); i++)
        fields[i] = (u8)from_bcd(fields[i]);
    if (!(mode & STATUS_B_24_HOURS))
        r.hour = (u8)(r.hour % 12 + (is_pm ? 12 : 0));
    unsigned century = r.century >= 19 && r.century <= 29 ? r.century : 20;

    if (r.month < 1 || r.month > 12 || r.day < 1 || r.day > 31 || r.hour > 23 || r.minute > 59 ||
        r.second > 60 || r.year > 99)
        return 0;
    return rtc_to_epoch(century * 100 + r.year, r.month, r.day, r.hour, r.minute, r.second);
}
