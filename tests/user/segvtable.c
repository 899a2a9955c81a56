/*
 * segvtable: every bad access that needs no race, and every exception that a program can raise, taken in a handler: signal,
 * code, and address as an offset from what was touched. The same on every kernel that does it right.
 *
 * The handler leaves by siglongjmp; in the last cases it repairs the cause and returns, and the access goes on.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096

static sigjmp_buf way_out;
static volatile sig_atomic_t got_signal, got_code;
static void *volatile got_addr;
static volatile uintptr_t got_rip;

static void note_and_leave(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *uc = context;

    got_signal = signal;
    got_code = info->si_code;
    got_addr = info->si_addr;
    got_rip = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
    siglongjmp(way_out, 1);
}

static const char *signal_name(int signal)
{
    switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGTRAP: return "SIGTRAP";
    default: return "no signal";
    }
}

static const struct {
    int signal, code;
    const char *name;
} codes[] = {
    {SIGSEGV, SEGV_MAPERR, "SEGV_MAPERR"}, {SIGSEGV, SEGV_ACCERR, "SEGV_ACCERR"},
    {SIGBUS, BUS_ADRERR, "BUS_ADRERR"},    {SIGBUS, BUS_ADRALN, "BUS_ADRALN"},
    {SIGFPE, FPE_INTDIV, "FPE_INTDIV"},    {SIGFPE, FPE_FLTDIV, "FPE_FLTDIV"},
    {SIGFPE, FPE_FLTINV, "FPE_FLTINV"},    {SIGFPE, FPE_FLTOVF, "FPE_FLTOVF"},
    {SIGILL, ILL_ILLOPN, "ILL_ILLOPN"},    {SIGTRAP, TRAP_TRACE, "TRAP_TRACE"},
    {SIGTRAP, TRAP_BRKPT, "TRAP_BRKPT"},
};

static void print_code(void)
{
    if (got_code == SI_KERNEL) {
        printf(" SI_KERNEL");
        return;
    }
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i].signal == got_signal && codes[i].code == got_code) {
            printf(" %s", codes[i].name);
            return;
        }
    }
    printf(" code %d", (int)got_code);
}

static void report(const char *name, const void *base)
{
    printf("%s: %s", name, signal_name(got_signal));
    if (got_signal) {
        print_code();
        if (!got_addr)
            printf(" address 0");
        else if ((uintptr_t)got_addr == got_rip && !base)
            printf(" address of the instruction");
        else
            printf(" base%+ld", (long)((uintptr_t)got_addr - (uintptr_t)base));
    }
    printf("\n");
}

/* One access; leaves by the handler. */
#define TAKE(name, base, access)            \
    do {                                    \
        got_signal = 0;                     \
        if (sigsetjmp(way_out, 1) == 0) {   \
            access;                         \
        }                                   \
        report(name, (const void *)(base)); \
    } while (0)

static char *pages(size_t n, int protection)
{
    char *map = mmap(NULL, n * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED) {
        perror("mmap");
        exit(99);
    }
    return map;
}

static char read_at(const char *p)
{
    return *(const volatile char *)p;
}

static void write_at(char *p)
{
    *(volatile char *)p = 1;
}

/* ---- Addresses ------------------------------------------------------------------------------ */

static void anonymous(void)
{
    char *hole = pages(3, PROT_READ | PROT_WRITE), *none = pages(1, PROT_NONE);
    char *readonly = pages(2, PROT_READ), *data = pages(1, PROT_READ | PROT_WRITE);

    munmap(hole + PAGE, PAGE);
    TAKE("read of a hole", hole, read_at(hole + PAGE + 5));
    TAKE("write to a hole", hole, write_at(hole + 2 * PAGE - 1));
    TAKE("8 bytes that run into a hole", hole, (void)*(volatile uint64_t *)(hole + PAGE - 3));
    TAKE("read without permission", none, read_at(none + 77));
    TAKE("write without permission", none, write_at(none + 78));
    TAKE("write to read-only memory never touched", readonly, write_at(readonly + 9));
    read_at(readonly + PAGE);
    TAKE("write to read-only memory that was read", readonly, write_at(readonly + PAGE + 9));
    data[0] = (char)0xc3;
    TAKE("execution of data", data, ((void (*)(void))(uintptr_t)data)());
    TAKE("execution of a hole", hole, ((void (*)(void))(uintptr_t)(hole + PAGE + 16))());
    mprotect(data, PAGE, PROT_READ);
    TAKE("write after mprotect", data, write_at(data + 1));
    munmap(data, PAGE);
    TAKE("read after munmap", data, read_at(data + 2));
}

static void special(void)
{
    char *volatile null = NULL;

    TAKE("read of address 0", 0, read_at(null));
    TAKE("write to address 8", 0, write_at(null + 8));
    TAKE("read of a kernel address", 0xffffffff80000000UL, read_at((char *)0xffffffff80000010UL));
    TAKE("write to a kernel address", 0xffff800000000000UL, write_at((char *)0xffff800000000001UL));
    TAKE("read of a non-canonical address", 0, read_at((char *)0x1234567800000000UL));
    TAKE("jump to a kernel address", 0xffffffff80000000UL,
         ((void (*)(void))0xffffffff80000000UL)());
    TAKE("write to the program's text", (uintptr_t)special,
         write_at((char *)(uintptr_t)special + 1));
}

static int temporary_file(const char *path, size_t bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0) {
        perror(path);
        exit(99);
    }
    unlink(path);
    return fd;
}

static void files(const char *shipped)
{
    int fd = open(shipped, O_RDONLY);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0) {
        perror(shipped);
        exit(99);
    }
    size_t n = ((size_t)status.st_size + PAGE - 1) / PAGE;
    char *map = mmap(NULL, (n + 2) * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    char *private = mmap(NULL, (n + 2) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

    TAKE("last byte of a file's last page", map, read_at(map + n * PAGE - 1));
    TAKE("read past the end of a file", map + n * PAGE, read_at(map + n * PAGE));
    TAKE("further past the end", map + n * PAGE, read_at(map + n * PAGE + PAGE + 123));
    TAKE("private read past the end", private + n * PAGE, read_at(private + n * PAGE + 3));
    TAKE("private write past the end", private + n * PAGE, write_at(private + n * PAGE + 4));
    TAKE("write to a read-only mapping of a file", map, write_at(map));
    TAKE("execution of a file mapped for reading", map, ((void (*)(void))(uintptr_t)(map + 3))());
    munmap(map, (n + 2) * PAGE);
    munmap(private, (n + 2) * PAGE);
    close(fd);
}

static void truncated(void)
{
    int fd = temporary_file("/tmp/segvtable.tmp", 3 * PAGE);
    char *map = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    write_at(map + 2 * PAGE);
    TAKE("write to a file in /tmp", map, write_at(map + PAGE));
    if (ftruncate(fd, PAGE) < 0)
        perror("ftruncate");
    TAKE("touched page after truncation", map, read_at(map + 2 * PAGE + 1));
    TAKE("page at the new end after truncation", map, write_at(map + PAGE));
    TAKE("page before the new end", map, write_at(map + PAGE - 1));
    if (ftruncate(fd, 3 * PAGE) < 0)
        perror("ftruncate");
    TAKE("page back after extension", map, read_at(map + 2 * PAGE));
    printf("its byte is %d\n", map[2 * PAGE]);
    munmap(map, 3 * PAGE);
    close(fd);
}

/* ---- Exceptions ----------------------------------------------------------------------------- */

static void divide_overflow(void)
{
    __asm__ volatile("movl $0x80000000, %%eax\n\tmovl $-1, %%ecx\n\tcdq\n\tidivl %%ecx" ::
                         : "eax", "ecx", "edx", "cc");
}

static void exceptions(void)
{
    unsigned short control = 0x37f & ~4; /* division by zero is not masked */

    TAKE("privileged instruction", 0, __asm__ volatile("hlt"));
    TAKE("port access", 0, __asm__ volatile("outb %%al, $0x80" ::"a"(0)));
    TAKE("undefined instruction", 0, __asm__ volatile("ud2"));
    TAKE("division by zero", 0,
         __asm__ volatile("xorl %%ecx, %%ecx\n\tcdq\n\tidivl %%ecx" ::
                              : "eax", "ecx", "edx", "cc"));
    TAKE("division overflow", 0, divide_overflow());
    TAKE("breakpoint", 0, __asm__ volatile("int3"));
    TAKE("interrupt that a program may not call", 0, __asm__ volatile("int $0x21"));
    TAKE("x87 division by zero", 0,
         __asm__ volatile("fninit\n\tfldcw %0\n\tfld1\n\tfldz\n\tfdivrp\n\tfwait" ::"m"(control)));
    __asm__ volatile("fninit");
    TAKE("single step", got_rip,
         __asm__ volatile("pushfq\n\torl $0x100, (%%rsp)\n\tpopfq\n\tnop\n\tnop" ::
                              : "cc", "memory"));
}

/* ---- Repaired and gone on ------------------------------------------------------------------- */

static char *repair_page;

static void repair(int signal, siginfo_t *info, void *context)
{
    (void)context;
    (void)info;
    got_signal = signal;
    mprotect(repair_page, PAGE, PROT_READ | PROT_WRITE);
}

static void step_over(int signal, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;

    (void)info;
    got_signal = signal;
    uc->uc_mcontext.gregs[REG_RIP] += 2; /* ud2 */
    uc->uc_mcontext.gregs[REG_RAX] = 42;
}

static void set_handler(int signal, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

    sigaction(signal, &action, NULL);
}

static void going_on(void)
{
    unsigned long rax;

    repair_page = pages(1, PROT_NONE);
    set_handler(SIGSEGV, repair);
    repair_page[3] = 33;
    printf("store after the handler allowed it: %s, byte %d\n", signal_name(got_signal),
           repair_page[3]);
    set_handler(SIGILL, step_over);
    __asm__ volatile("xorl %%eax, %%eax\n\tud2" : "=a"(rax)::"cc");
    printf("instruction stepped over by the handler: %s, rax %lu\n", signal_name(got_signal), rax);
}

int main(int argc, char **argv)
{
    static const int taken[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};

    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        set_handler(taken[i], note_and_leave);
    anonymous();
    special();
    files(argc > 1 ? argv[1] : "/data/small.txt");
    exceptions();
    if (argc > 2)
        truncated();
    going_on();
    printf("done\n");
    return 0;
}
