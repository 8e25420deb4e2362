/*
 * Which vector instructions to use, decided once.
 *
 * Kernels that matter exist as twins: plain C, AVX2, NEON. They give the same
 * answer; the tests run them against each other on random input. The choice
 * is made at the first call from what the processor has; the environment
 * variable NPUPROF_SIMD=scalar forces the plain one.
 */
#ifndef NP_BASE_SIMD_H
#define NP_BASE_SIMD_H

enum np_simd {
	NP_SIMD_SCALAR,
	NP_SIMD_AVX2, /* with PCLMUL */
	NP_SIMD_NEON,
};

enum np_simd np_simd_level(void);
const char *np_simd_name(enum np_simd level);

#endif
