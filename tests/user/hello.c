/*
 * hello: the smallest program: one line, status 0.
 */
#include <stdio.h>

int main(void)
{
    puts("hello, world");
    return 0;
}
