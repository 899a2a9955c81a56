/*
 * Pipes, FIFOs and the calls that wait for several files: `pipes DIR`. The same on every kernel.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SHOW(call) show(#call, (long)(call))

static char buf[200000];

static void show(const char *what, long result)
{
    if (result < 0)
        printf("%s: %s\n", what, strerror(errno));
    else
        printf("%s: %ld\n", what, result);
}

static void show_poll(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    int n = poll(&p, 1, 0);
    printf("poll %d: events %x\n", n, (unsigned)p.revents);
}

static volatile sig_atomic_t got_signal;

static void on_signal(int number)
{
    got_signal = number;
}

/* One process, nothing ever waits. */
static void alone(void)
{
    int fds[2], used, *volatile nowhere = (int *)8;
    printf("-- alone\n");
    SHOW(pipe2(fds, O_NONBLOCK | O_CLOEXEC));
    SHOW(fcntl(fds[0], F_GETFL) & (O_NONBLOCK | O_ACCMODE));
    SHOW(fcntl(fds[1], F_GETFL) & (O_NONBLOCK | O_ACCMODE));
    SHOW(fcntl(fds[0], F_GETFD));
    SHOW(fcntl(fds[0], F_GETPIPE_SZ));
    SHOW(read(fds[0], buf, 10));
    show_poll(fds[0], POLLIN | POLLOUT);
    show_poll(fds[1], POLLIN | POLLOUT);
    SHOW(write(fds[1], "hello", 5));
    show_poll(fds[0], POLLIN);
    SHOW(ioctl(fds[0], FIONREAD, &used));
    printf("%d\n", used);
    SHOW(read(fds[0], buf, 3));
    SHOW(read(fds[0], buf, 100));
    SHOW(write(fds[0], "x", 1));
    SHOW(read(fds[1], buf, 1));
    SHOW(lseek(fds[0], 0, SEEK_SET));
    SHOW(pread(fds[0], buf, 1, 0));
    SHOW(pwrite(fds[1], buf, 1, 0));
    SHOW(write(fds[1], buf, 65536));
    SHOW(write(fds[1], buf, 1));
    show_poll(fds[1], POLLOUT);
    SHOW(read(fds[0], buf, 4096));
    show_poll(fds[1], POLLOUT);
    SHOW(write(fds[1], buf, 4096));
    SHOW(read(fds[0], buf, sizeof(buf)));
    SHOW(write(fds[1], (void *)8, 10));
    SHOW(write(fds[1], "abc", 3));
    SHOW(read(fds[0], (void *)8, 3));
    SHOW(read(fds[0], buf, 0));
    SHOW(write(fds[1], buf, 0));
    close(fds[1]);
    show_poll(fds[0], POLLIN);
    SHOW(read(fds[0], buf, 10));
    SHOW(read(fds[0], buf, 10));
    show_poll(fds[0], POLLIN);
    close(fds[0]);
    SHOW(pipe2(fds, 12345));
    SHOW(pipe(nowhere));
    SHOW(pipe(fds));
    close(fds[0]);
    show_poll(fds[1], POLLOUT);
    signal(SIGPIPE, SIG_IGN);
    SHOW(write(fds[1], "x", 1));
    signal(SIGPIPE, on_signal);
    SHOW(write(fds[1], "x", 1));
    printf("signal %d\n", got_signal == SIGPIPE);
    signal(SIGPIPE, SIG_DFL);
    close(fds[1]);
}

static void fifos(void)
{
    struct stat st;
    printf("-- FIFOs\n");
    SHOW(mkfifo("fifo", 0622));
    SHOW(open("fifo", O_WRONLY | O_NONBLOCK));
    int reader = open("fifo", O_RDONLY | O_NONBLOCK);
    SHOW(reader >= 0);
    SHOW(read(reader, buf, 10));
    int writer = open("fifo", O_WRONLY);
    SHOW(write(writer, "through", 7));
    SHOW(read(reader, buf, 100));
    fstat(reader, &st);
    printf("mode %o\n", st.st_mode);
    SHOW(read(reader, buf, 1));
    close(writer);
    SHOW(read(reader, buf, 1));
    show_poll(reader, POLLIN);
    close(reader);
    int both = open("fifo", O_RDWR);
    SHOW(write(both, "self", 4));
    SHOW(read(both, buf, 100));
    close(both);
    SHOW(unlink("fifo"));
}

static void waiting(void)
{
    struct pollfd fds[12];
    struct timespec ts = {0, 1000000};
    struct timeval tv = {0, 1000}, long_time = {100, 0};
    int pipes[2];
    fd_set in, out;
    printf("-- waiting\n");
    SHOW(pipe(pipes));
    for (int i = 0; i < 12; i++)
        fds[i] = (struct pollfd){.fd = i == 3   ? pipes[0]
                                       : i == 5 ? pipes[1]
                                       : i == 7 ? 999
                                                : -1,
                                 .events = POLLIN | POLLOUT};
    SHOW(poll(fds, 12, -1));
    printf("%x %x %x %x\n", fds[0].revents, fds[3].revents, fds[5].revents, fds[7].revents);
    SHOW(poll(fds, 5, 1));
    SHOW(poll(fds, 0, 1));
    SHOW(ppoll(fds, 5, &ts, NULL));
    ts.tv_nsec = -1;
    SHOW(ppoll(fds, 5, &ts, NULL));
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(pipes[0], &in);
    FD_SET(pipes[1], &out);
    SHOW(select(pipes[1] + 1, &in, &out, NULL, &long_time));
    printf("%d %d %d\n", FD_ISSET(pipes[0], &in), FD_ISSET(pipes[1], &out), long_time.tv_sec >= 98);
    FD_ZERO(&in);
    FD_SET(pipes[0], &in);
    SHOW(select(pipes[0] + 1, &in, NULL, NULL, &tv));
    printf("%d %ld\n", FD_ISSET(pipes[0], &in), (long)tv.tv_usec);
    SHOW(write(pipes[1], "x", 1));
    FD_SET(pipes[0], &in);
    SHOW(select(pipes[0] + 1, &in, NULL, NULL, NULL));
    close(pipes[1]);
    FD_SET(pipes[1], &in);
    SHOW(select(pipes[1] + 1, &in, NULL, NULL, NULL));
    SHOW(select(-1, NULL, NULL, NULL, &tv));
    close(pipes[0]);
    int fd = open(".", O_RDONLY);
    show_poll(fd, POLLIN | POLLOUT);
    close(fd);
}

static void in_child(void (*fn)(int *fds), int *fds)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        fn(fds);
        _exit(0);
    }
}

static void send_late(int *fds)
{
    usleep(30000);
    if (write(fds[1], "late", 4) != 4)
        _exit(1);
}

static void send_much(int *fds)
{
    for (int i = 0; i < 100000; i++)
        buf[i] = i % 251;
    close(fds[0]);
    for (int turn = 0; turn < 10; turn++)
        if (write(fds[1], buf, 100000) != 100000)
            _exit(1);
}

/* Writes of 1000 equal bytes: none may be torn by another writer's. */
static void send_whole(int *fds)
{
    char mine[1000];
    memset(mine, getpid() % 200 + 1, sizeof(mine));
    close(fds[0]);
    for (int turn = 0; turn < 300; turn++)
        if (write(fds[1], mine, sizeof(mine)) != sizeof(mine))
            _exit(1);
}

static int children_succeeded(int n)
{
    int status, good = 0;
    while (n-- > 0)
        good += wait(&status) > 0 && status == 0;
    return good;
}

static void between_processes(void)
{
    int fds[2];
    long total = 0, n, wrong = 0;
    struct pollfd p;
    printf("-- between processes\n");
    SHOW(pipe(fds));
    in_child(send_late, fds);
    p = (struct pollfd){.fd = fds[0], .events = POLLIN};
    SHOW(poll(&p, 1, 10000));
    SHOW(read(fds[0], buf, 100));
    in_child(send_late, fds);
    SHOW(read(fds[0], buf, 100));
    in_child(send_much, fds);
    printf("children %d\n", children_succeeded(2));
    close(fds[1]);
    for (; (n = read(fds[0], buf, sizeof(buf))) > 0; total += n)
        for (long i = 0; i < n; i++)
            wrong += (unsigned char)buf[i] != (total + i) % 100000 % 251;
    printf("%ld bytes, %ld wrong, children %d\n", total, wrong, children_succeeded(1));
    close(fds[0]);

    SHOW(pipe(fds));
    for (int i = 0; i < 3; i++)
        in_child(send_whole, fds);
    close(fds[1]);
    for (total = wrong = 0; (n = read(fds[0], buf, 1000)) > 0; total += n) {
        while (n < 1000) {
            long more = read(fds[0], buf + n, 1000 - n);
            if (more <= 0)
                break;
            n += more;
        }
        for (long i = 1; i < n; i++)
            wrong += buf[i] != buf[0];
    }
    printf("%ld bytes, %ld torn, children %d\n", total, wrong, children_succeeded(3));
    close(fds[0]);
}

static void killed_by_pipe(int *fds)
{
    close(fds[0]);
    if (write(fds[1], "x", 1) < 0)
        _exit(3);
}

static void open_fifo_late(int *fds)
{
    (void)fds;
    usleep(30000);
    int fd = open("fifo", O_WRONLY);
    if (write(fd, "opened", 6) != 6)
        _exit(1);
}

static void ends(void)
{
    int fds[2], status;
    printf("-- ends\n");
    SHOW(pipe(fds));
    close(fds[0]);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        killed_by_pipe(fds);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    printf("by signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
    close(fds[1]);

    mkfifo("fifo", 0600);
    in_child(open_fifo_late, fds);
    int fd = open("fifo", O_RDONLY);
    SHOW(read(fd, buf, 100));
    SHOW(read(fd, buf, 100));
    printf("children %d\n", children_succeeded(1));
    close(fd);
    unlink("fifo");

    SHOW(pipe(fds));
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGALRM, &action, NULL);
    ualarm(20000, 0);
    SHOW(read(fds[0], buf, 1));
    ualarm(20000, 0);
    SHOW(poll(&(struct pollfd){.fd = fds[0], .events = POLLIN}, 1, 10000));
    close(fds[0]);
    close(fds[1]);
}

static void shared_memory(void)
{
    int *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = open("result", O_CREAT | O_RDWR, 0600), status;
    printf("-- shared memory\n");
    SHOW(ftruncate(fd, 4096));
    int *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    unlink("result");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        shared[0] = 11;
        shared[1500] = 22;
        page[3] = 33;
        _exit(0);
    }
    waitpid(pid, &status, 0);
    printf("%d %d %d\n", shared[0], shared[1500], page[3]);
}

/* Memory that is given to a pipe as it is. */
static void giving(void)
{
    struct iovec vectors[2], bad = {(void *)8, 5};
    char *memory = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fds[2];
    printf("-- vmsplice\n");
    SHOW(pipe2(fds, O_NONBLOCK));
    memset(memory, 'a', 4 * 4096);
    vectors[0] = (struct iovec){memory, 2 * 4096};
    vectors[1] = (struct iovec){memory + 2 * 4096 + 5, 100};
    SHOW(vmsplice(fds[1], vectors, 2, 0));
    if (fork() == 0) {
        memset(memory, 'b', 4 * 4096); /* over a copy: the pipe keeps what was given */
        munmap(memory, 4 * 4096);
        _exit(0);
    }
    wait(NULL);
    munmap(memory, 4 * 4096);
    SHOW(read(fds[0], buf, sizeof(buf)));
    long wrong = 0;
    for (int i = 0; i < 2 * 4096 + 100; i++)
        wrong += buf[i] != 'a';
    printf("wrong %ld\n", wrong);
    SHOW(write(fds[1], "out again", 9));
    vectors[0] = (struct iovec){buf, 3};
    vectors[1] = (struct iovec){buf + 100, 50};
    SHOW(vmsplice(fds[0], vectors, 2, SPLICE_F_NONBLOCK));
    printf("%.3s%.6s\n", buf, buf + 100);
    SHOW(vmsplice(fds[1], &bad, 1, 0));
    SHOW(vmsplice(fds[1], vectors, 1, 16));
    SHOW(vmsplice(fds[1], vectors, 2000, 0));
    SHOW(vmsplice(0, vectors, 1, 0));
    SHOW(vmsplice(999, vectors, 1, 0));
    SHOW(vmsplice(fds[1], vectors, 0, 0));
    SHOW(write(fds[1], buf, 65536));
    SHOW(vmsplice(fds[1], vectors, 1, SPLICE_F_NONBLOCK));
    close(fds[0]);
    signal(SIGPIPE, SIG_IGN);
    SHOW(vmsplice(fds[1], vectors, 1, 0));
    signal(SIGPIPE, SIG_DFL);
    close(fds[1]);
}

static void pair_of(int type, int fds[2])
{
    SHOW(socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, fds));
}

/* Connected sockets, of each type. */
static void sockets(int type)
{
    int fds[2], bytes;
    struct stat st;
    printf("-- sockets %d\n", type);
    signal(SIGPIPE, SIG_IGN);
    pair_of(type, fds);
    fstat(fds[0], &st);
    printf("mode %o\n", st.st_mode);
    SHOW(read(fds[0], buf, 10));
    SHOW(write(fds[1], "first", 5));
    SHOW(send(fds[1], "second", 6, MSG_NOSIGNAL));
    SHOW(ioctl(fds[0], FIONREAD, &bytes));
    printf("%d\n", bytes);
    show_poll(fds[0], POLLIN | POLLOUT);
    show_poll(fds[1], POLLIN | POLLOUT);
    SHOW(recv(fds[0], buf, 3, MSG_PEEK));
    SHOW(read(fds[0], buf, 3));
    SHOW(recv(fds[0], buf, 100, 0));
    printf("%.5s\n", buf);
    SHOW(recv(fds[0], buf, 100, 0));
    SHOW(write(fds[0], "back", 4));
    SHOW(read(fds[1], buf, 100));
    SHOW(write(fds[0], (void *)8, 4));
    SHOW(lseek(fds[0], 0, SEEK_SET));
    SHOW(shutdown(fds[0], 7));
    SHOW(shutdown(0, SHUT_WR));
    SHOW(shutdown(fds[0], SHUT_WR));
    SHOW(send(fds[0], "x", 1, MSG_NOSIGNAL));
    SHOW(read(fds[1], buf, 1));
    SHOW(write(fds[1], "unread", 6));
    close(fds[0]);
    SHOW(read(fds[1], buf, 1));
    SHOW(read(fds[1], buf, 1));
    SHOW(send(fds[1], "x", 1, MSG_NOSIGNAL));
    show_poll(fds[1], POLLIN | POLLOUT);
    close(fds[1]);
    SHOW(socketpair(AF_UNIX, type, 0, fds)); /* one that waits */
    if (fork() == 0) {
        long sum = 0, n;
        close(fds[0]);
        while ((n = read(fds[1], buf, 1000)) > 0)
            sum += n;
        printf("child: %ld, %d\n", sum, errno);
        fflush(stdout);
        _exit(0);
    }
    close(fds[1]);
    long sent = 0;
    memset(buf, 'x', 1000);
    for (int i = 0; i < 400; i++)
        sent += write(fds[0], buf, 1000);
    printf("sent %ld\n", sent);
    fflush(stdout);
    if (type == SOCK_DGRAM)
        SHOW(write(fds[0], buf, 0)); /* its end is not seen otherwise */
    close(fds[0]);
    wait(NULL);
    signal(SIGPIPE, SIG_DFL);
}

static void bad_sockets(void)
{
    int fds[2], *volatile nowhere = (int *)8;
    printf("-- bad sockets\n");
    SHOW(socketpair(AF_UNIX, 6, 0, fds));
    SHOW(socketpair(AF_UNIX, SOCK_STREAM | 64, 0, fds));
    SHOW(socketpair(AF_UNIX, SOCK_STREAM, 99, fds));
    SHOW(socketpair(AF_UNIX, SOCK_STREAM, 0, nowhere));
    SHOW(pipe(fds));
    SHOW(send(fds[1], "x", 1, 0));
    SHOW(recv(fds[0], buf, 1, 0));
    close(fds[0]);
    close(fds[1]);
}

int main(int argc, char **argv)
{
    char place[512];
    setvbuf(stdout, NULL, _IOFBF, 65536);
    snprintf(place, sizeof(place), "%s/pipes.XXXXXX", argc > 1 ? argv[1] : "/tmp");
    if (!mkdtemp(place) || chdir(place)) {
        perror(place);
        return 1;
    }
    umask(022);
    alone();
    fifos();
    waiting();
    between_processes();
    ends();
    shared_memory();
    giving();
    sockets(SOCK_STREAM);
    sockets(SOCK_SEQPACKET);
    sockets(SOCK_DGRAM);
    bad_sockets();
    SHOW(chdir(".."));
    SHOW(rmdir(place));
    return 0;
}
