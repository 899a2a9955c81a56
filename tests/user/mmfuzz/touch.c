#include "tests/user/mmfuzz/fuzz.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>

static sigjmp_buf escape;
static struct touched caught;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    caught = (struct touched){number, info->si_code, info->si_addr};
    siglongjmp(escape, 1);
}

void touch_catch_signals(void)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};

    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

struct touched touch_read(const char *address, uint64_t *value)
{
    caught = (struct touched){0};
    if (sigsetjmp(escape, 0) == 0)
        *value = *(const volatile uint64_t *)address;
    return caught;
}

struct touched touch_write(char *address, uint64_t value)
{
    caught = (struct touched){0};
    if (sigsetjmp(escape, 0) == 0)
        *(volatile uint64_t *)address = value;
    return caught;
}

struct touched touch_sum_page(const char *page, uint64_t *sum)
{
    caught = (struct touched){0};
    if (sigsetjmp(escape, 0) == 0) {
        const volatile uint64_t *words = (const volatile uint64_t *)page;
        uint64_t total = 0;

        for (size_t i = 0; i < PAGE / sizeof *words; i++)
            total = total * 31 + words[i];
        *sum = total;
    }
    return caught;
}

/* The address only where it is not the one that was touched. */
void log_touched(struct touched touched, const char *address)
{
    log_text_add(touched.signal == SIGSEGV ? "segv" : "bus");
    log_number(touched.code);
    if (touched.address != address) {
        log_text_add("@");
        log_address(touched.address);
    }
}
