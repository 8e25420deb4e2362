#include "base/simd.h"

#include <stdlib.h>
#include <string.h>

static enum np_simd detect(void)
{
	const char *wish = getenv("NPUPROF_SIMD");
	if (wish && strcmp(wish, "scalar") == 0)
		return NP_SIMD_SCALAR;
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul"))
		return NP_SIMD_AVX2;
	return NP_SIMD_SCALAR;
#elif defined(__aarch64__)
	return NP_SIMD_NEON;
#else
	return NP_SIMD_SCALAR;
#endif
}

enum np_simd np_simd_level(void)
{
	static _Atomic int known = -1; /* two threads may both detect; the answer is the same */
	int level = known;
	if (level < 0)
		known = level = (int)detect();
	return (enum np_simd)level;
}

const char *np_simd_name(enum np_simd level)
{
	static const char *const names[] = {"scalar", "avx2", "neon"};
	return names[level];
}
