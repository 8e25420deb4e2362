#include "io/csv_scan.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* ── plain C ── */

static void index_scalar(struct np_csv_scan *state, const char *bytes, size_t len, uint32_t base,
                         struct np_csv_marks *marks)
{
	uint64_t inside = state->inside;
	for (size_t i = 0; i < len; i++) {
		char c = bytes[i];
		if (c == '"') {
			inside = ~inside;
		} else if (c == '\0') {
			state->nul = true;
		} else if ((c == ',' || c == '\n') && !inside) {
			if (c == '\n')
				marks->rows[marks->n_rows++] = (uint32_t)marks->n_seps;
			marks->seps[marks->n_seps++] = base + (uint32_t)i;
		}
	}
	state->inside = inside;
}

static bool breaks_scalar(struct np_csv_scan *state, const char *bytes, size_t len, size_t *first,
                          size_t *last)
{
	bool found = false;
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '"') {
			state->inside = ~state->inside;
		} else if (bytes[i] == '\0') {
			state->nul = true;
		} else if (bytes[i] == '\n' && !state->inside) {
			if (!found)
				*first = i;
			*last = i;
			found = true;
		}
	}
	return found;
}

/* ── what the vector twins share ── */

#if defined(__x86_64__) || defined(__aarch64__)

enum { BLOCK = 64, PREFETCH_AHEAD = 4096 };

struct block {
	uint64_t quotes, commas, breaks;
};

/* The processor does not always fetch ahead far enough by itself: on a 2-core virtual
 * machine (Xeon, 2 MiB of L2) the index of a large file ran at 1.4 GB/s without this
 * and 6.5 with it. Addresses behind the end do no harm. */
INLINE void prefetch(const char *bytes, size_t at)
{
	__builtin_prefetch((const void *)((uintptr_t)bytes + at + PREFETCH_AHEAD));
}

/* The last block may be short: a copy, filled up with bytes that mean nothing. */
INLINE const char *block_at(const char *bytes, size_t at, size_t len, char tail[BLOCK])
{
	if (at + BLOCK <= len)
		return bytes + at;
	memset(tail, ' ', BLOCK);
	memcpy(tail, bytes + at, len - at);
	return tail;
}

INLINE void write_four(uint32_t *out, uint64_t *bits, uint32_t base)
{
	/* without a bit left ctz is undefined, and its result is overwritten: any will do */
	const uint64_t some = UINT64_C(1) << 63;
	out[0] = base + (uint32_t)__builtin_ctzll(*bits | some);
	*bits &= *bits - 1;
	out[1] = base + (uint32_t)__builtin_ctzll(*bits | some);
	*bits &= *bits - 1;
	out[2] = base + (uint32_t)__builtin_ctzll(*bits | some);
	*bits &= *bits - 1;
	out[3] = base + (uint32_t)__builtin_ctzll(*bits | some);
	*bits &= *bits - 1;
}

/* Always write eight, since a branch that nobody can predict would cost more than the
 * stores; what is too much is overwritten by the next block (hence NP_CSV_SCAN_ROOM). */
INLINE void write_positions(uint32_t *out, uint64_t bits, uint32_t base, unsigned n)
{
	write_four(out, &bits, base);
	write_four(out + 4, &bits, base);
	for (unsigned done = 8; done < n; done += 4)
		write_four(out + done, &bits, base);
}

INLINE void emit(struct np_csv_marks *marks, uint64_t seps, uint64_t breaks, uint32_t base)
{
	while (breaks) {
		uint64_t below = (breaks & (0 - breaks)) - 1;
		marks->rows[marks->n_rows++] =
			(uint32_t)marks->n_seps + (uint32_t)__builtin_popcountll(seps & below);
		breaks &= breaks - 1;
	}
	unsigned n = (unsigned)__builtin_popcountll(seps);
	write_positions(marks->seps + marks->n_seps, seps, base, n);
	marks->n_seps += n;
}

INLINE void note_breaks(uint64_t breaks, size_t at, bool *found, size_t *first, size_t *last)
{
	if (!breaks)
		return;
	if (!*found)
		*first = at + (size_t)__builtin_ctzll(breaks);
	*last = at + 63 - (size_t)__builtin_clzll(breaks);
	*found = true;
}

#endif

/* ── AVX2 with carry-less multiplication ── */

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2,pclmul,popcnt")))

AVX2 INLINE uint64_t mask_avx2(__m256i low, __m256i high, char c)
{
	const __m256i wanted = _mm256_set1_epi8(c);
	uint32_t a = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted));
	uint32_t b = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted));
	return (uint64_t)b << 32 | a;
}

AVX2 INLINE struct block block_avx2(const char *p, __m256i *nul)
{
	__m256i low = _mm256_loadu_si256((const void *)p);
	__m256i high = _mm256_loadu_si256((const void *)(p + 32));
	/* the smaller of two bytes is 0 where one is */
	__m256i zero = _mm256_cmpeq_epi8(_mm256_min_epu8(low, high), _mm256_setzero_si256());
	*nul = _mm256_or_si256(*nul, zero);
	return (struct block){mask_avx2(low, high, '"'), mask_avx2(low, high, ','),
	                      mask_avx2(low, high, '\n')};
}

/* Bit i of the product with all ones is the XOR of bits 0 … i. */
AVX2 INLINE uint64_t inside_avx2(uint64_t quotes, uint64_t *carry)
{
	__m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)quotes),
	                                       _mm_set1_epi8((char)0xff), 0);
	uint64_t inside = (uint64_t)_mm_cvtsi128_si64(product) ^ *carry;
	*carry = 0 - (inside >> 63);
	return inside;
}

AVX2 static void index_avx2(struct np_csv_scan *state, const char *bytes, size_t len, uint32_t base,
                            struct np_csv_marks *caller_marks)
{
	struct np_csv_marks marks = *caller_marks; /* a copy can stay in registers */
	__m256i nul = _mm256_setzero_si256();
	uint64_t carry = state->inside;
	char tail[BLOCK];
	for (size_t at = 0; at < len; at += BLOCK) {
		prefetch(bytes, at);
		struct block block = block_avx2(block_at(bytes, at, len, tail), &nul);
		uint64_t outside = ~inside_avx2(block.quotes, &carry);
		emit(&marks, (block.commas | block.breaks) & outside, block.breaks & outside,
		     base + (uint32_t)at);
	}
	*caller_marks = marks;
	state->inside = carry;
	state->nul |= _mm256_movemask_epi8(nul) != 0;
}

AVX2 static bool breaks_avx2(struct np_csv_scan *state, const char *bytes, size_t len,
                             size_t *first, size_t *last)
{
	bool found = false;
	__m256i nul = _mm256_setzero_si256();
	uint64_t carry = state->inside;
	char tail[BLOCK];
	for (size_t at = 0; at < len; at += BLOCK) {
		prefetch(bytes, at);
		struct block block = block_avx2(block_at(bytes, at, len, tail), &nul);
		uint64_t outside = ~inside_avx2(block.quotes, &carry);
		note_breaks(block.breaks & outside, at, &found, first, last);
	}
	state->inside = carry;
	state->nul |= _mm256_movemask_epi8(nul) != 0;
	return found;
}

#endif

/* ── NEON ── */

#if defined(__aarch64__)

INLINE uint64_t mask_neon(const uint8x16_t v[4], char c)
{
	static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128,
	                                    1, 2, 4, 8, 16, 32, 64, 128};
	const uint8x16_t bit = vld1q_u8(weights), wanted = vdupq_n_u8((uint8_t)c);
	uint8x16_t m0 = vandq_u8(vceqq_u8(v[0], wanted), bit);
	uint8x16_t m1 = vandq_u8(vceqq_u8(v[1], wanted), bit);
	uint8x16_t m2 = vandq_u8(vceqq_u8(v[2], wanted), bit);
	uint8x16_t m3 = vandq_u8(vceqq_u8(v[3], wanted), bit);
	uint8x16_t sum = vpaddq_u8(vpaddq_u8(m0, m1), vpaddq_u8(m2, m3));
	return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)), 0);
}

INLINE struct block block_neon(const char *p, uint8x16_t *smallest)
{
	uint8x16_t v[4];
	for (int i = 0; i < 4; i++) {
		v[i] = vld1q_u8((const uint8_t *)p + i * 16);
		*smallest = vminq_u8(*smallest, v[i]);
	}
	return (struct block){mask_neon(v, '"'), mask_neon(v, ','), mask_neon(v, '\n')};
}

/* Shifts, not PMULL: that one is an optional instruction. */
INLINE uint64_t inside_neon(uint64_t quotes, uint64_t *carry)
{
	uint64_t inside = quotes;
	for (unsigned shift = 1; shift < 64; shift *= 2)
		inside ^= inside << shift;
	inside ^= *carry;
	*carry = 0 - (inside >> 63);
	return inside;
}

static void index_neon(struct np_csv_scan *state, const char *bytes, size_t len, uint32_t base,
                       struct np_csv_marks *caller_marks)
{
	struct np_csv_marks marks = *caller_marks;
	uint8x16_t smallest = vdupq_n_u8(255);
	uint64_t carry = state->inside;
	char tail[BLOCK];
	for (size_t at = 0; at < len; at += BLOCK) {
		prefetch(bytes, at);
		struct block block = block_neon(block_at(bytes, at, len, tail), &smallest);
		uint64_t outside = ~inside_neon(block.quotes, &carry);
		emit(&marks, (block.commas | block.breaks) & outside, block.breaks & outside,
		     base + (uint32_t)at);
	}
	*caller_marks = marks;
	state->inside = carry;
	state->nul |= vminvq_u8(smallest) == 0;
}

static bool breaks_neon(struct np_csv_scan *state, const char *bytes, size_t len, size_t *first,
                        size_t *last)
{
	bool found = false;
	uint8x16_t smallest = vdupq_n_u8(255);
	uint64_t carry = state->inside;
	char tail[BLOCK];
	for (size_t at = 0; at < len; at += BLOCK) {
		prefetch(bytes, at);
		struct block block = block_neon(block_at(bytes, at, len, tail), &smallest);
		uint64_t outside = ~inside_neon(block.quotes, &carry);
		note_breaks(block.breaks & outside, at, &found, first, last);
	}
	state->inside = carry;
	state->nul |= vminvq_u8(smallest) == 0;
	return found;
}

#endif

/* ── choice ── */

void np_csv_scan_index(enum np_simd level, struct np_csv_scan *state, const char *bytes, size_t len,
                       uint32_t base, struct np_csv_marks *marks)
{
#if defined(__x86_64__)
	if (level == NP_SIMD_AVX2) {
		index_avx2(state, bytes, len, base, marks);
		return;
	}
#elif defined(__aarch64__)
	if (level == NP_SIMD_NEON) {
		index_neon(state, bytes, len, base, marks);
		return;
	}
#endif
	(void)level;
	index_scalar(state, bytes, len, base, marks);
}

bool np_csv_scan_breaks(enum np_simd level, struct np_csv_scan *state, const char *bytes,
                        size_t len, size_t *first, size_t *last)
{
#if defined(__x86_64__)
	if (level == NP_SIMD_AVX2)
		return breaks_avx2(state, bytes, len, first, last);
#elif defined(__aarch64__)
	if (level == NP_SIMD_NEON)
		return breaks_neon(state, bytes, len, first, last);
#endif
	(void)level;
	return breaks_scalar(state, bytes, len, first, last);
}
