/* host-test-sources: lib/string.c */
/*
 * The kernel's own memory and string functions (here lib_memcpy and so on) compared with the C
 * library's, at all small lengths and alignments; the bitmap functions against an array of bool.
 */
#include <stdlib.h>

#include "lib/bitmap.h"
#include "lib/rng.h"
#include "lib/string.h"
#include "tests/host/tap.h"

void *lib_memcpy(void *restrict dst, const void *restrict src, size_t n);
void *lib_memmove(void *dst, const void *src, size_t n);
void *lib_memset(void *dst, int byte, size_t n);
int lib_memcmp(const void *a, const void *b, size_t n);
void *lib_memchr(const void *s, int byte, size_t n);
size_t lib_strlen(const char *s);
size_t lib_strnlen(const char *s, size_t max);
int lib_strcmp(const char *a, const char *b);
int lib_strncmp(const char *a, const char *b, size_t n);
char *lib_strchr(const char *s, int c);
char *lib_strrchr(const char *s, int c);
char *lib_strstr(const char *haystack, const char *needle);

#define AREA    96
#define LENGTHS 40

static struct rng rng;

static void fill_random(u8 *area, size_t n)
{
    for (size_t i = 0; i < n; i++)
        area[i] = (u8)rng_next(&rng);
}

static void test_copy_and_fill(void)
{
    u8 src[AREA], ours[AREA], theirs[AREA];

    for (size_t n = 0; n < LENGTHS; n++) {
        for (size_t from = 0; from < 9; from++) {
            for (size_t to = 0; to < 9; to++) {
                fill_random(src, AREA);
                fill_random(ours, AREA);
                memcpy(theirs, ours, AREA);
                CHECK(lib_memcpy(ours + to, src + from, n) == ours + to);
                memcpy(theirs + to, src + from, n);
                CHECK(memcmp(ours, theirs, AREA) == 0);
                CHECK(lib_memset(ours + to, 0x180 + (int)n, n) == ours + to);
                memset(theirs + to, 0x180 + (int)n, n);
                CHECK(memcmp(ours, theirs, AREA) == 0);
            }
        }
    }
}

static void test_overlapping_move(void)
{
    u8 ours[AREA], theirs[AREA];

    for (size_t n = 0; n < LENGTHS; n++) {
        for (size_t from = 0; from < 40; from++) {
            for (size_t to = 0; to < 40; to++) {
                fill_random(ours, AREA);
                memcpy(theirs, ours, AREA);
                CHECK(lib_memmove(ours + to, ours + from, n) == ours + to);
                memmove(theirs + to, theirs + from, n);
                CHECK(memcmp(ours, theirs, AREA) == 0);
            }
        }
    }
}

static int sign(int x)
{
    return (x > 0) - (x < 0);
}

/* Short texts of two letters, ended at the buffer's end, so that the sanitizer sees overruns. */
static void test_compare_and_search(void)
{
    for (int i = 0; i < 50000; i++) {
        size_t na = rng_below(&rng, 20), nb = rng_below(&rng, 20), n = rng_below(&rng, 22);
        char *a = malloc(na + 1), *b = malloc(nb + 1);

        for (size_t k = 0; k <= na; k++)
            a[k] = k == na ? 0 : rng_one_in(&rng, 8) ? (char)0xe9 : 'a';
        for (size_t k = 0; k <= nb; k++)
            b[k] = k == nb ? 0 : rng_one_in(&rng, 8) ? (char)0xe9 : 'a';
        CHECK(lib_strlen(a) == na);
        CHECK(lib_strnlen(a, n) == MIN(na, n));
        CHECK(sign(lib_strcmp(a, b)) == sign(strcmp(a, b)));
        CHECK(sign(lib_strncmp(a, b, n)) == sign(strncmp(a, b, n)));
        n = MIN(n, MIN(na, nb));
        CHECK(sign(lib_memcmp(a, b, n)) == sign(memcmp(a, b, n)));
        CHECK(lib_memchr(a, 0xe9, na) == memchr(a, 0xe9, na));
        CHECK(lib_strchr(a, (char)0xe9) == strchr(a, (char)0xe9));
        CHECK(lib_strchr(a, 0) == a + na);
        CHECK(lib_strrchr(a, 'a') == strrchr(a, 'a'));
        CHECK(lib_strrchr(a, 0) == a + na);
        CHECK(lib_strstr(a, b + nb - MIN(nb, 3)) == strstr(a, b + nb - MIN(nb, 3)));
        free(a);
        free(b);
    }
}

static void test_string_copy(void)
{
    char buf[8];

    for (size_t size = 0; size <= sizeof(buf); size++) {
        memset(buf, '#', sizeof(buf));
        CHECK(string_copy(buf, "abcd", size) == 4);
        for (size_t i = 0; i < sizeof(buf); i++) {
            size_t end = MIN(size ? size - 1 : 0, 4);

            CHECK(buf[i] == (size == 0 || i > end ? '#' : i == end ? 0 : "abcd"[i]));
        }
    }
    CHECK(string_starts_with("ktest=x", "ktest=") && !string_starts_with("kt", "ktest="));
    CHECK(string_ends_with("a.elf", ".elf") && !string_ends_with("elf", ".elf"));
}

static void test_pages(void)
{
    u8 *src = aligned_alloc(PAGE_SIZE, PAGE_SIZE), *dst = aligned_alloc(PAGE_SIZE, PAGE_SIZE);

    fill_random(src, PAGE_SIZE);
    page_copy(dst, src);
    CHECK(memcmp(dst, src, PAGE_SIZE) == 0);
    page_clear(dst);
    for (size_t i = 0; i < PAGE_SIZE; i++)
        CHECK(dst[i] == 0);
    free(src);
    free(dst);
}

static size_t next_equal(const bool *flat, size_t bits, size_t from, bool wanted)
{
    while (from < bits && flat[from] != wanted)
        from++;
    return MIN(from, bits);
}

static void test_bitmap(void)
{
    static const size_t sizes[] = {1, 63, 64, 65, 200};

    for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
        size_t bits = sizes[s];
        u64 *map = calloc(BITMAP_WORDS(bits), sizeof(u64));
        bool flat[256] = {false};

        for (int i = 0; i < 20000; i++) {
            size_t bit = rng_below(&rng, bits), from = rng_below(&rng, bits + 1);

            flat[bit] = rng_below(&rng, 1 + (u64)(i / 2000));
            if (flat[bit])
                bitmap_set(map, bit);
            else
                bitmap_clear(map, bit);
            bit = rng_below(&rng, bits);
            CHECK(bitmap_test(map, bit) == flat[bit]);
            CHECK(bitmap_next_set(map, bits, from) == next_equal(flat, bits, from, true));
            CHECK(bitmap_next_zero(map, bits, from) == next_equal(flat, bits, from, false));
        }
        free(map);
    }
}

static const struct tap_test tests[] = {
    {"string/copy_and_fill", test_copy_and_fill},
    {"string/overlapping_move", test_overlapping_move},
    {"string/compare_and_search", test_compare_and_search},
    {"string/copy_is_cut_and_terminated", test_string_copy},
    {"string/pages", test_pages},
    {"bitmap/equals_array_of_bool", test_bitmap},
};

int main(void)
{
    rng_seed(&rng, 1);
    return tap_main(tests, ARRAY_SIZE(tests));
}
