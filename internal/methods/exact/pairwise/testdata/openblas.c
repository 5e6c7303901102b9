/* Prints the GFLOP/s of OpenBLAS on a product of m x k and k x n: the least time on the processor of
 * 25 runs of at least 2 ms each, as measure_linux_test.go measures. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int m = atoi(argv[1]), n = atoi(argv[2]), k = atoi(argv[3]);
    double *a = malloc(sizeof(double) * m * k), *b = malloc(sizeof(double) * k * n);
    double *c = malloc(sizeof(double) * m * n);
    for (int i = 0; i < m * k; i++) a[i] = 1 + i % 7;
    for (int i = 0; i < k * n; i++) b[i] = 1 + i % 7;
    double best = 1e9;
    int calls = 1;
    for (int runs = 0; runs < 25;) {
        double begin = now();
        for (int i = 0; i < calls; i++)
            cblas_dgemm(101, 111, 111, m, n, k, 1, a, k, b, n, 0, c, n);
        double took = now() - begin;
        if (took < 2e-3) {
            calls *= 2;
            continue;
        }
        if (took / calls < best) best = took / calls;
        runs++;
    }
    printf("%.3f\n", 2.0 * m * n * k / best / 1e9);
    return 0;
}
