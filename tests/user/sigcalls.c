/*
 * sigcalls: the calls about signals, in one process: masks, order, nesting, stacks, information, waiting, restart, timers,
 * and registers kept over a handler. Prints the same on every kernel that does it right.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/user/show.h"

#define MS 1000000L

static char trail[256]; /* what handlers did, in order */

static void mark(const char *word)
{
    strncat(trail, word, sizeof(trail) - strlen(trail) - 1);
}

static void show_trail(const char *name)
{
    printf("%s:%s\n", name, trail);
    trail[0] = '\0';
}

static void mark_number(int signal)
{
    char word[16];

    snprintf(word, sizeof(word), " %d", signal);
    mark(word);
}

static void set(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

static void set_info(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};

    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

static sigset_t set_of(int a, int b, int c)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, a);
    sigaddset(&set, b);
    sigaddset(&set, c);
    return set;
}

static void block(int a, int b, int c)
{
    sigset_t signals = set_of(a, b, c);

    sigprocmask(SIG_BLOCK, &signals, NULL);
}

static void unblock_all(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- Masks and order ------------------------------------------------------------------------ */

static void show_pending(const char *name)
{
    sigset_t pending;

    sigpending(&pending);
    printf("%s: USR1 %d USR2 %d TERM %d\n", name, sigismember(&pending, SIGUSR1),
           sigismember(&pending, SIGUSR2), sigismember(&pending, SIGTERM));
}

static void masks(void)
{
    set(SIGUSR1, mark_number, 0);
    set(SIGUSR2, mark_number, 0);
    set(SIGTERM, mark_number, 0);
    block(SIGUSR1, SIGUSR2, SIGTERM);
    raise(SIGTERM);
    kill(getpid(), SIGUSR2);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1);
    show_pending("blocked and pending");
    show_trail("nothing ran");
    set(SIGTERM, SIG_IGN, 0);
    show_pending("ignoring takes it away");
    unblock_all();
    show_trail("all at once, each once");
    show_pending("nothing left");
    raise(SIGUSR1);
    show_trail("unblocked runs at once");
}

static void raise_second(int signal)
{
    mark_number(signal);
    mark("(");
    raise(SIGUSR2);
    raise(SIGUSR1);
    mark(")");
}

static int depth;

static void raise_itself(int signal)
{
    mark_number(signal);
    if (depth++ < 2) {
        mark("(");
        raise(signal);
        mark(")");
    }
}

static void nesting(void)
{
    struct sigaction action = {.sa_handler = raise_second};

    set(SIGUSR2, mark_number, 0);
    sigaction(SIGUSR1, &action, NULL);
    depth = 0;
    set(SIGUSR1, raise_second, 0);
    raise(SIGTERM);
    set(SIGUSR1, raise_itself, SA_NODEFER);
    raise(SIGUSR1);
    show_trail("SA_NODEFER nests");
    depth = 0;
    set(SIGUSR1, raise_itself, 0);
    raise(SIGUSR1);
    show_trail("without it they come one after the other");
    action.sa_handler = raise_second;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR2);
    action.sa_flags = SA_RESETHAND;
    sigaction(SIGUSR1, &action, NULL);
    set(SIGCHLD, mark_number, SA_RESETHAND);
    raise(SIGCHLD);
    raise(SIGCHLD);
    sigaction(SIGCHLD, NULL, &action);
    show_trail("SA_RESETHAND runs once");
    SHOW_TRUE("default afterwards", action.sa_handler == SIG_DFL);
    set(SIGUSR1, SIG_IGN, 0);
    raise(SIGUSR1);
    show_trail("ignored");
}

/* ---- Alternate stacks ----------------------------------------------------------------------- */

static char alternate[65536];
static sigjmp_buf way_out;

static void where(int signal)
{
    char here;
    stack_t stack;

    (void)signal;
    sigaltstack(NULL, &stack);
    mark(&here >= alternate && &here < alternate + sizeof(alternate) ? " on it" : " not on it");
    mark(stack.ss_flags == SS_ONSTACK ? " SS_ONSTACK"
         : stack.ss_flags == 0        ? " enabled"
                                      : " SS_DISABLE");
    mark(sigaltstack(&stack, NULL) < 0 ? " EPERM" : " may change");
}

static void overflow(int signal)
{
    (void)signal;
    siglongjmp(way_out, 1);
}

static __attribute__((noinline)) int dig(volatile char *above)
{
    volatile char here[4096];

    here[0] = above ? above[0] : 1;
    here[4095] = 1;
    return here[0] == 77 ? 0 : dig(here) + here[4095]; /* it never is */
}

static void alternate_stacks(void)
{
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)}, old,
            small = {.ss_sp = alternate, .ss_size = 1024};
    stack_t wrong = {.ss_sp = alternate, .ss_size = sizeof(alternate), .ss_flags = 16};
    stack_t off = {.ss_flags = SS_DISABLE};

    sigaltstack(NULL, &old);
    printf("at first: flags %d\n", old.ss_flags);
    SHOW("too small", sigaltstack(&small, NULL));
    SHOW("wrong flags", sigaltstack(&wrong, NULL));
    set(SIGUSR1, where, SA_ONSTACK);
    set(SIGUSR2, where, 0);
    raise(SIGUSR1);
    show_trail("SA_ONSTACK without a stack");
    SHOW("set", sigaltstack(&stack, NULL));
    raise(SIGUSR1);
    show_trail("SA_ONSTACK");
    raise(SIGUSR2);
    show_trail("without SA_ONSTACK");
    set(SIGSEGV, overflow, SA_ONSTACK);
    if (sigsetjmp(way_out, 1) == 0)
        printf("%d\n", dig(NULL));
    else
        printf("stack overflow was survived\n");
    sigaltstack(NULL, &old);
    SHOW_TRUE("left by siglongjmp, it is free again", old.ss_flags == 0);
    set(SIGSEGV, SIG_DFL, 0);
    SHOW("off", sigaltstack(&off, NULL));
    raise(SIGUSR1);
    show_trail("off");
}

/* ---- Information ---------------------------------------------------------------------------- */

static void tell(int signal, siginfo_t *info, void *context)
{
    char word[96];

    (void)context;
    snprintf(word, sizeof(word), " [%d code %d from me %d value %d]",
             signal == info->si_signo ? signal : -1, info->si_code, info->si_pid == getpid(),
             info->si_value.sival_int);
    mark(word);
}

static void tell_sender(int signal, siginfo_t *info, void *context)
{
    char word[96];

    (void)context;
    snprintf(word, sizeof(word), " [%d code %d from me %d]", signal, info->si_code,
             info->si_pid == getpid());
    mark(word);
}

static void information(void)
{
    int rt = SIGRTMIN + 1;
    siginfo_t info = {.si_code = SI_USER};

    set_info(SIGUSR1, tell_sender, 0);
    set_info(rt, tell, 0);
    set_info(rt + 1, tell, 0);
    kill(getpid(), SIGUSR1);
    syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
    syscall(SYS_tkill, gettid(), SIGUSR1);
    show_trail("kill, tgkill, tkill");
    block(rt, rt + 1, SIGUSR1);
    for (int i = 1; i <= 3; i++) {
        sigqueue(getpid(), rt + 1, (union sigval){.sival_int = 10 * i});
        sigqueue(getpid(), rt, (union sigval){.sival_int = i});
    }
    unblock_all();
    show_trail("real-time signals: handlers are entered lowest last, each in its order");
    SHOW("kill(0 pid exists, signal 0)", kill(getpid(), 0));
    SHOW("kill: no such signal", kill(getpid(), 65));
    SHOW("kill: no such process", kill(999999, SIGUSR1) == -1 && errno == ESRCH);
    SHOW("tgkill: bad thread", syscall(SYS_tgkill, getpid(), -1, SIGUSR1));
    SHOW("tkill: bad thread", syscall(SYS_tkill, 0, SIGUSR1));
    SHOW("rt_sigqueueinfo to myself with the kernel's code",
         syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &info));
    show_trail("arrived");
    SHOW("rt_sigqueueinfo with it to another",
         syscall(SYS_rt_sigqueueinfo, getpid() + 100000, 0, &info));
    SHOW("bad pointer", syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, 8));
}

static void wrong_calls(void)
{
    uint64_t mask = 0;

    SHOW("handler for SIGKILL", signal(SIGKILL, SIG_IGN) == SIG_ERR ? -1 : 0);
    SHOW("sigaction 0", syscall(SYS_rt_sigaction, 0, NULL, NULL, 8));
    SHOW("sigaction 65", syscall(SYS_rt_sigaction, 65, NULL, NULL, 8));
    SHOW("sigaction size 4", syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 4));
    SHOW("sigaction bad pointer", syscall(SYS_rt_sigaction, SIGUSR1, 8, NULL, 8));
    SHOW("sigprocmask how 7", syscall(SYS_rt_sigprocmask, 7, &mask, NULL, 8));
    SHOW("sigprocmask bad pointer", syscall(SYS_rt_sigprocmask, SIG_SETMASK, 8, NULL, 8));
    SHOW("sigprocmask size 16", syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 16));
    SHOW("sigsuspend size 4", syscall(SYS_rt_sigsuspend, &mask, 4));
    SHOW("sigaltstack bad pointer", syscall(SYS_sigaltstack, 8, NULL));
    mask = ~0UL;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &mask, 8);
    printf("everything blocked: %lx\n", mask);
    unblock_all();
}

/* ---- Waiting and restart -------------------------------------------------------------------- */

static void arm(long first_ms, long interval_ms)
{
    struct itimerval timer = {.it_value = {first_ms / 1000, first_ms % 1000 * 1000},
                              .it_interval = {interval_ms / 1000, interval_ms % 1000 * 1000}};

    setitimer(ITIMER_REAL, &timer, NULL);
}

static long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / MS;
}

static void waiting(void)
{
    sigset_t rt = set_of(SIGUSR1, SIGRTMIN + 2, SIGALRM), none;
    siginfo_t info;
    struct timespec soon = {0, 20 * MS}, zero = {0, 0}, wrong = {0, 2000 * MS};

    set(SIGUSR1, mark_number, 0);
    set(SIGALRM, mark_number, 0);
    sigprocmask(SIG_BLOCK, &rt, NULL);
    SHOW("sigtimedwait: nothing there", sigtimedwait(&rt, &info, &zero) == -1 && errno == EAGAIN);
    SHOW("sigtimedwait: nothing comes", sigtimedwait(&rt, &info, &soon) == -1 && errno == EAGAIN);
    SHOW("sigtimedwait: bad time", sigtimedwait(&rt, &info, &wrong));
    sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = 4711});
    printf("sigtimedwait: %d", sigtimedwait(&rt, &info, NULL) - SIGRTMIN);
    printf(" code %d value %d\n", info.si_code, info.si_value.sival_int);
    arm(10, 0);
    printf("sigwaitinfo for an alarm: %d", sigwaitinfo(&rt, &info));
    printf(" code %s\n", info.si_code == SI_KERNEL ? "SI_KERNEL" : "other");
    arm(10, 0);
    sigemptyset(&none);
    sigaddset(&none, SIGUSR2);
    SHOW("sigsuspend", sigsuspend(&none) == -1 && errno == EINTR);
    sigprocmask(SIG_SETMASK, NULL, &none);
    SHOW_TRUE("the mask is back", sigismember(&none, SIGALRM) && !sigismember(&none, SIGUSR2));
    show_trail("the handler ran");
    unblock_all();
    arm(10, 0);
    SHOW("pause", pause() == -1 && errno == EINTR);
    show_trail("after pause");
}

static void restart(void)
{
    struct timespec long_time = {0, 150 * MS}, endless = {2, 0}, left = {9, 9};
    long start = now_ms();

    set(SIGALRM, mark_number, 0);
    arm(20, 0);
    SHOW("nanosleep with a handler", nanosleep(&endless, &left) == -1 && errno == EINTR);
    SHOW_TRUE("some of it is left", left.tv_sec <= 1 && (left.tv_sec > 0 || left.tv_nsec > 0));
    set(SIGALRM, mark_number, SA_RESTART);
    arm(20, 0);
    SHOW("nanosleep is not restarted by SA_RESTART",
         nanosleep(&endless, &left) == -1 && errno == EINTR);
    show_trail("handlers");
    set(SIGALRM, SIG_IGN, 0);
    start = now_ms();
    arm(10, 10);
    SHOW("nanosleep with an ignored signal", nanosleep(&long_time, &left));
    SHOW_TRUE("slept to its end", now_ms() - start >= 150);
    arm(0, 0);
    left = (struct timespec){0, 3000 * MS};
    SHOW("nanosleep: bad time", nanosleep(&left, NULL));
    SHOW("clock_nanosleep: bad clock", syscall(SYS_clock_nanosleep, 77, 0, &long_time, NULL));
    clock_gettime(CLOCK_MONOTONIC, &left);
    start = now_ms();
    left.tv_nsec += 30 * MS;
    left.tv_sec += left.tv_nsec / (1000 * MS);
    left.tv_nsec %= 1000 * MS;
    SHOW("clock_nanosleep until a time",
         clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &left, NULL));
    SHOW_TRUE("it is that late", now_ms() - start >= 29);
    SHOW("clock_nanosleep until a time that is over",
         clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &left, NULL));
}

/* ---- Timers --------------------------------------------------------------------------------- */

static volatile sig_atomic_t ticks;

static void tick(int signal)
{
    (void)signal;
    ticks++;
}

static void use_time_until(int n)
{
    while (ticks < n)
        getppid();
}

static void timers(void)
{
    struct itimerval timer = {.it_value = {0, 5000}, .it_interval = {0, 5000}}, old, zero = {0};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGRTMIN + 3,
                             .sigev_value = {.sival_int = 99}};
    struct itimerspec spec = {.it_value = {0, 5 * MS}, .it_interval = {0, 5 * MS}}, left;
    sigset_t wanted = set_of(SIGRTMIN + 3, SIGRTMIN + 3, SIGRTMIN + 3);
    timer_t id;
    siginfo_t info;

    set(SIGALRM, tick, SA_RESTART);
    set(SIGVTALRM, tick, SA_RESTART);
    set(SIGPROF, tick, SA_RESTART);
    ticks = 0;
    setitimer(ITIMER_REAL, &timer, NULL);
    use_time_until(3);
    setitimer(ITIMER_REAL, &zero, &old);
    printf("ITIMER_REAL: interval %ld us\n", (long)old.it_interval.tv_usec);
    ticks = 0;
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
    use_time_until(2);
    setitimer(ITIMER_VIRTUAL, &zero, NULL);
    ticks = 0;
    setitimer(ITIMER_PROF, &timer, NULL);
    use_time_until(2);
    setitimer(ITIMER_PROF, &zero, NULL);
    printf("ITIMER_VIRTUAL and ITIMER_PROF went off\n");
    SHOW("setitimer 3", syscall(SYS_setitimer, 3, &timer, NULL));
    SHOW("alarm before", alarm(100));
    SHOW("alarm again", alarm(0));
    SHOW("timer_create", timer_create(CLOCK_MONOTONIC, &event, &id));
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    SHOW("timer_settime", timer_settime(id, 0, &spec, NULL));
    sigwaitinfo(&wanted, &info);
    printf("its signal: code SI_TIMER %d value %d\n", info.si_code == SI_TIMER,
           info.si_value.sival_int);
    nanosleep(&(struct timespec){0, 40 * MS}, NULL);
    sigwaitinfo(&wanted, &info);
    SHOW_TRUE("late: overruns", info.si_overrun >= 2 && timer_getoverrun(id) == info.si_overrun);
    SHOW("timer_gettime", timer_gettime(id, &left));
    SHOW_TRUE("interval", left.it_interval.tv_nsec == 5 * MS && left.it_value.tv_nsec <= 5 * MS);
    SHOW("timer_delete", timer_delete(id));
    SHOW("timer_delete again", syscall(SYS_timer_delete, id));
    unblock_all();
}

/* ---- Registers ------------------------------------------------------------------------------ */

static void spoil(int signal)
{
    (void)signal;
    __asm__ volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0\n\tvmovdqa %%ymm0, %%ymm1\n\tvmovdqa %%ymm0, "
                     "%%ymm15\n\tfninit\n\tfldpi" ::
                         : "memory");
    mark(" spoiled");
}

static uint32_t mxcsr_in_handler;

static void look_at_mxcsr(int signal)
{
    (void)signal;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr_in_handler));
}

/* getpid's number and kill's in registers, so that nothing lies between loading and storing the vectors. */
static void vectors(void)
{
    uint64_t in[3][4] __attribute__((aligned(32))), out[3][4] __attribute__((aligned(32)));
    uint32_t mxcsr = 0x9fc0, mxcsr_out; /* flush to zero, denormals are zero */
    double one = 1.25, st0 = 0;
    long result = SYS_tgkill;
    int same = 1;

    for (int i = 0; i < 12; i++)
        in[i / 4][i % 4] = 0x1122334455667788UL * (uint64_t)(i + 1);
    set(SIGUSR1, spoil, 0);
    __asm__ volatile(
        "vmovdqa (%[in]), %%ymm0\n\tvmovdqa 32(%[in]), %%ymm1\n\tvmovdqa 64(%[in]), %%ymm15\n\t"
        "fldl %[one]\n\tldmxcsr %[mxcsr]\n\tsyscall\n\t"
        "vmovdqa %%ymm0, (%[out])\n\tvmovdqa %%ymm1, 32(%[out])\n\tvmovdqa %%ymm15, 64(%[out])\n\t"
        "fstpl %[st0]\n\tstmxcsr %[mxcsr_out]\n\tvzeroupper"
        : "+a"(result), [st0] "=m"(st0), [mxcsr_out] "=m"(mxcsr_out)
        : [in] "r"(in), [out] "r"(out), [one] "m"(one), [mxcsr] "m"(mxcsr), "D"(getpid()),
          "S"(gettid()), "d"(SIGUSR1)
        : "rcx", "r11", "memory", "xmm0", "xmm1", "xmm15", "st");
    same = memcmp(in, out, sizeof(in)) == 0;
    show_trail("vectors");
    SHOW_TRUE("AVX registers are kept over a handler", same);
    SHOW_TRUE("x87 and MXCSR too", st0 == one && mxcsr_out == mxcsr);
    set(SIGUSR1, look_at_mxcsr, 0);
    raise(SIGUSR1);
    printf("MXCSR in a handler: %x\n", mxcsr_in_handler);
    mxcsr = 0x1f80;
    __asm__ volatile("ldmxcsr %0" ::"m"(mxcsr));
}

static void use_stack(int signal)
{
    char filler[256];

    memset(filler, 0x5a, sizeof(filler));
    mark_number(signal);
    __asm__ volatile("" ::"r"(filler) : "memory");
}

/* 128 bytes below the stack pointer belong to the interrupted function. */
static void red_zone(void)
{
    uint64_t kept = 0, rbx;
    long result = SYS_tgkill;

    set(SIGUSR1, use_stack, 0);
    __asm__ volatile(
        "movabsq $0x1234567890abcdef, %%rbx\n\tmovq %%rbx, -8(%%rsp)\n\tmovq %%rbx, -128(%%rsp)\n\t"
        "syscall\n\tmovq -8(%%rsp), %%rcx\n\tmovq -128(%%rsp), %[kept]\n\tandq %%rcx, "
        "%[kept]\n\tmovq %%rbx, %[rbx]"
        : "+a"(result), [kept] "=&r"(kept), [rbx] "=m"(rbx)
        : "D"(getpid()), "S"(gettid()), "d"(SIGUSR1)
        : "rcx", "r11", "rbx", "memory");
    show_trail("red zone");
    printf("kept %lx, rbx %lx, result %ld\n", kept, rbx, result);
}

/* ---- The frame ------------------------------------------------------------------------------ */

static void change_context(int signal, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    uint32_t *sw = (uint32_t *)((char *)uc->uc_mcontext.fpregs + 464);

    (void)info;
    mark_number(signal);
    mark((uc->uc_flags & 6) == 6 ? " flags" : " other flags");
    mark(!(uc->uc_flags & 1) || sw[0] == 0x46505853 ? " magic" : " no magic");
    mark(!(uc->uc_flags & 1) || *(uint32_t *)((char *)uc->uc_mcontext.fpregs + sw[4]) == 0x46505845
             ? " end"
             : " no end");
    mark(((uintptr_t)uc->uc_mcontext.fpregs & 63) == 0 ? " aligned" : " unaligned");
    uc->uc_mcontext.gregs[REG_EFL] |=
        0x3000 | 0x20000 | 0x1; /* IOPL, VM86: not ours to set; carry: is */
    sigaddset(&uc->uc_sigmask, SIGUSR2);
    sigaddset(&uc->uc_sigmask, SIGKILL);
}

static void forged(void)
{
    uint64_t flags;
    long result = SYS_tgkill;
    sigset_t mask;

    set_info(SIGUSR1, change_context, 0);
    __asm__ volatile("syscall\n\tpushfq\n\tpopq %[flags]"
                     : "+a"(result), [flags] "=&r"(flags)
                     : "D"(getpid()), "S"(gettid()), "d"(SIGUSR1)
                     : "rcx", "r11", "memory", "cc");
    show_trail("frame");
    printf("carry %d, IOPL %d\n", (int)(flags & 1), (int)(flags >> 12 & 3));
    sigprocmask(SIG_SETMASK, NULL, &mask);
    printf("mask from the frame: USR2 %d KILL %d\n", sigismember(&mask, SIGUSR2),
           sigismember(&mask, SIGKILL));
    unblock_all();
}

static void spoil_frame(int signal, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    char *fpu = (char *)uc->uc_mcontext.fpregs;

    (void)info;
    if (signal == SIGUSR1)
        *(uint32_t *)(fpu + 24) = 0xffffffff; /* MXCSR */
    else
        *(uint64_t *)(fpu + 512 + 8) = ~0UL; /* compacted form, reserved bits */
}

static void bad_frame_came(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    mark(info->si_code == SI_KERNEL ? " SIGSEGV SI_KERNEL" : " SIGSEGV");
    siglongjmp(way_out, 1);
}

static void bad_frames(void)
{
    set_info(SIGSEGV, bad_frame_came, 0);
    set_info(SIGUSR1, spoil_frame, 0);
    set_info(SIGUSR2, spoil_frame, 0);
    if (sigsetjmp(way_out, 1) == 0)
        raise(SIGUSR1);
    show_trail("MXCSR with reserved bits");
    if (sigsetjmp(way_out, 1) == 0)
        raise(SIGUSR2);
    show_trail("XSAVE header with reserved bits");
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"masks", masks},
    {"nesting", nesting},
    {"stacks", alternate_stacks},
    {"information", information},
    {"wrong", wrong_calls},
    {"waiting", waiting},
    {"restart", restart},
    {"timers", timers},
    {"vectors", vectors},
    {"redzone", red_zone},
    {"forged", forged},
    {"badframes", bad_frames},
};

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (argc > 1 && strcmp(argv[1], parts[i].name) != 0)
            continue;
        printf("-- %s\n", parts[i].name);
        parts[i].run();
    }
    printf("done\n");
    return 0;
}
