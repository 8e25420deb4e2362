/* Noise: a pure function of (seed, key), so that any part of the run can be
 * computed alone and gives the same again. splitmix64's finaliser. */
#ifndef NP_SYNTH_RNG_H
#define NP_SYNTH_RNG_H

#include <stdint.h>

static inline uint64_t np_noise(uint64_t seed, uint64_t key)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + key * 0xd1342543de82ef95u + 0x632be59bd9b4e019u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* value times 1 ± permille/1000, by `noise` */
static inline int64_t np_jitter(int64_t value, unsigned permille, uint64_t noise)
{
	int64_t at = (int64_t)(noise % (2u * permille + 1)) - (int64_t)permille;
	return value + value * at / 1000;
}

#endif
