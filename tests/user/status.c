/*
 * status: ends with the status that its argument says, through exit or straight by the system call.
 *
 * Use: status N [raw]. N may be larger than a status can hold: the low eight bits count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int status = argc > 1 ? atoi(argv[1]) : 0;

    printf("ends with %d", status);
    if (argc > 2 && strcmp(argv[2], "raw") == 0) {
        fflush(stdout);
        syscall(SYS_exit_group, status);
    }
    exit(status);
}
