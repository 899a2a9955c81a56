"""Sizes in /proc and in getrusage, step by step (tests/user/memsizes.c). The same program prints the
same on Linux, but where that counts in batches for each CPU."""

import harness

EXPECTED = """\
map 4096 private: VmPeak+4096 VmSize+4096 VmData+4096 size+4096 data+4096
read 10: the zero page:
write 1000: VmHWM+1000 VmRSS+1000 RssAnon+1000 resident+1000
dontneed 600: the peak stays: VmRSS-600 RssAnon-600 resident-600
write 100 below the peak: VmRSS+100 RssAnon+100 resident+100
protect 1024: no data: VmData-1024 data-1024
lock 50 that are there: VmLck+50
unmap all: VmSize-4096 VmLck-50 VmRSS-500 RssAnon-500 VmData-3072 size-4096 resident-500 data-3072
write 20 of shared memory: VmRSS+20 RssShmem+20 resident+20 shared+20
populate 32 private of a file: VmSize+32 VmRSS+32 RssAnon+32 VmData+32 size+32 resident+32 data+32
populate 32 shared of a file: VmSize+32 VmRSS+32 RssFile+32 size+32 resident+32 shared+32
unmap both: VmSize-96 VmRSS-52 RssFile-32 RssShmem-20 size-96 resident-52 shared-52
getrusage agrees with VmHWM: 1
reset: VmHWM is VmRSS: 1; getrusage too: 1
a child's peak: 1
clear_refs takes: 0, few are left: 1, those read again count: 1
bad: -22 -22 -22
untouched: present 0, swapped 0, file or shared 0, exclusive 0
private: present 1, swapped 0, file or shared 0, exclusive 1
shared: present 1, swapped 0, file or shared 1, exclusive 1
file: present 1, swapped 0, file or shared 1, exclusive 0
copy of a file's page: present 1, swapped 0, file or shared 0, exclusive 1
private, with a child: present 1, swapped 0, file or shared 0, exclusive 0
frame number shown to root: 1
private again: present 1, swapped 0, file or shared 0, exclusive 1
"""


def test_sizes_step_by_step():
    result = harness.boot("/tests/memsizes", "/data/medium.bin")
    assert result.status == 0, result.explain()
    assert result.out == EXPECTED, result.explain()
