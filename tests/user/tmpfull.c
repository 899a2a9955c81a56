/*
 * Fills a file system in memory to its limit: `tmpfull DIR`. What fails, what still works, and that
 * all comes back.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK      65536
#define STILL_FREE (16l << 20)

static char chunk[CHUNK];

/* => bytes written before the error, which stays in errno */
static long fill(int fd)
{
    long total = 0, n;
    while ((n = write(fd, chunk, sizeof(chunk))) > 0)
        total += n;
    return total;
}

static int signal_of_store(char *at)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        *(volatile char *)at = 1;
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(int argc, char **argv)
{
    struct sysinfo info;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && chdir(argv[1]))
        return 1;
    int sparse = open("sparse", O_CREAT | O_RDWR, 0600);
    char *map = MAP_FAILED;
    if (ftruncate(sparse, 1l << 30) == 0)
        map = mmap(NULL, 1l << 30, PROT_READ | PROT_WRITE, MAP_SHARED, sparse, 0);
    if (map == MAP_FAILED)
        return 2;
    sysinfo(&info);
    int fd = open("full", O_CREAT | O_WRONLY, 0600);
    long total = fill(fd), memory = info.totalram * info.mem_unit;
    printf("write: %s\n", strerror(errno));
    printf("between a third and two thirds of memory: %s\n",
           total > memory / 3 && total < memory / 3 * 2 ? "yes" : "no");
    printf("a store to a page that is not there: signal %d\n", signal_of_store(map + (123l << 20)));
    char *private_memory = malloc(STILL_FREE);
    if (private_memory)
        memset(private_memory, 1, STILL_FREE);
    printf("memory for programs: %s\n",
           private_memory && private_memory[STILL_FREE / 2] ? "yes" : "no");
    int other = open("other", O_CREAT | O_WRONLY, 0600);
    printf("a new file's first byte: %s\n",
           write(other, chunk, 1) < 0 ? strerror(errno) : "written");
    close(fd);
    unlink("full");
    printf("after unlink: %ld\n", (long)write(other, chunk, 1));
    return 0;
}
