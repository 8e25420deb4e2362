#include "io/json_scan.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* Classes of the bytes of one block, before strings are known. */
struct classes {
	uint64_t backslash, quote, op, space;
	uint64_t upper; /* bytes with bit 6, which tells brackets from `,` and `:` */
	uint64_t odd;
};

/*
 * Bytes that follow an odd run of backslashes. Adding the run to its first bit
 * carries out to the byte behind it; whether that sits at an even or odd place,
 * compared with where the run began, gives the run's parity:
 *
 *   text      a \ \ \ " b        runs that begin at odd places overflow into
 *   run       . # # # . .        `sums`, the others stay as they are
 */
INLINE uint64_t find_escaped(struct np_json_scan *state, uint64_t backslash)
{
	if (__builtin_expect(backslash == 0, 1)) {
		uint64_t escaped = state->escaped;
		state->escaped = 0;
		return escaped;
	}
	const uint64_t even = 0x5555555555555555u;
	backslash &= ~state->escaped; /* an escaped backslash begins no run */
	uint64_t follows = backslash << 1 | state->escaped;
	uint64_t odd_starts = backslash & ~even & ~follows;
	unsigned long long sums;
	state->escaped = __builtin_add_overflow((unsigned long long)odd_starts,
	                                        (unsigned long long)backslash, &sums);
	return (even ^ ((uint64_t)sums << 1)) & follows;
}

/* Masks of block `i`; `inside` covers a string from its opening quote to the
 * byte before its closing one. */
INLINE void emit(struct np_json_scan *state, const struct classes *c, uint64_t quote,
                 uint64_t inside, size_t i, struct np_json_masks out)
{
	uint64_t scalar = ~(c->op | c->space | quote);
	uint64_t first = scalar & ~(scalar << 1 | state->scalar);
	state->scalar = scalar >> 63;
	state->in_string = 0 - (inside >> 63);
	out.structure[i] = quote | ((c->op | first) & ~inside);
	out.brackets[i] = c->op & c->upper & ~inside;
	out.odd[i] = c->odd & inside;
}

INLINE uint64_t prefix_xor(uint64_t bits)
{
	for (unsigned shift = 1; shift < 64; shift <<= 1)
		bits ^= bits << shift;
	return bits;
}

/*
 * The loop takes some 30 cycles a block, so out-of-order execution alone keeps
 * too few cache lines in flight for text that comes from memory: asked for a
 * page ahead it runs up to ten times as fast. A prefetch never faults.
 */
INLINE void prefetch(const void *bytes)
{
	__builtin_prefetch((const void *)((uintptr_t)bytes + 4096));
}

/* ── plain C ────────────────────────────────────────────────────────────────── */

enum { BACKSLASH = 1, QUOTE = 2, OP = 4, SPACE = 8, UPPER = 16, ODD = 32, NUL = 64 };

static unsigned classify(unsigned char byte)
{
	unsigned class = (byte & 0x40 ? UPPER : 0u) | (byte < 0x20 || byte >= 0x80 ? ODD : 0u);
	switch (byte) {
	case 0:
		return class | NUL;
	case '\\':
		return class | BACKSLASH | ODD;
	case '"':
		return class | QUOTE;
	case '{':
	case '}':
	case '[':
	case ']':
	case ',':
	case ':':
	case 0x0c: /* what the table look-up of the vector twins takes for `,` … */
	case 0x1a: /* … and `:`; the reader looks at the byte and refuses them */
		return class | OP;
	case ' ':
	case '\t':
	case '\n':
	case '\r':
		return class | SPACE;
	default:
		return class;
	}
}

/* The top bit of each byte of `word` that is 0, exactly. */
INLINE uint64_t zero_bytes(uint64_t word)
{
	const uint64_t low7 = 0x7f7f7f7f7f7f7f7fu;
	return ~(((word & low7) + low7) | word | low7);
}

INLINE uint64_t equal(uint64_t word, unsigned char c)
{
	return zero_bytes(word ^ 0x0101010101010101u * c);
}

/* The top bits of 8 bytes as 8 bits at `shift`: the product lines them up. */
INLINE uint64_t gather(uint64_t tops, unsigned shift)
{
	return ((tops >> 7) * 0x0102040810204080u >> 56) << shift;
}

/* 8 bytes of a block at a time, as classify() has it. True when one of them is NUL. */
INLINE bool classify_words(struct classes *c, const char *bytes)
{
	uint64_t nul = 0;
	*c = (struct classes){0};
	for (unsigned shift = 0; shift < NP_JSON_BLOCK; shift += 8) {
		uint64_t word;
		memcpy(&word, bytes + shift, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		word = __builtin_bswap64(word);
#endif
		uint64_t folded = word | 0x2020202020202020u; /* `[` as `{`, `]` as `}` */
		uint64_t slash = equal(word, '\\');
		uint64_t control = zero_bytes(word & 0xe0e0e0e0e0e0e0e0u);
		c->backslash |= gather(slash, shift);
		c->quote |= gather(equal(word, '"'), shift);
		c->op |= gather(equal(folded, '{') | equal(folded, '}') | equal(folded, ',') |
		                        equal(folded, ':'),
		                shift);
		c->space |= gather(equal(word, ' ') | equal(word, '\n') | equal(word, '\r') |
		                           equal(word, '\t'),
		                   shift);
		c->upper |= gather(word << 1 & 0x8080808080808080u, shift);
		c->odd |= gather((slash | control | word) & 0x8080808080808080u, shift);
		nul |= zero_bytes(word);
	}
	return nul != 0;
}

static bool scan_plain(struct np_json_scan *state, const char *bytes, size_t blocks,
                       struct np_json_masks out)
{
	bool nul = false;
	for (size_t i = 0; i < blocks; i++) {
		struct classes c;
		prefetch(bytes + i * NP_JSON_BLOCK);
		nul |= classify_words(&c, bytes + i * NP_JSON_BLOCK);
		uint64_t quote = c.quote & ~find_escaped(state, c.backslash);
		emit(state, &c, quote, prefix_xor(quote) ^ state->in_string, i, out);
	}
	return nul;
}

/* One byte outside strings and comments. True when it (and what follows) is comment. */
static bool comment_begins(const char *at, const char *end)
{
	return *at == '#' || (*at == '/' && at + 1 < end && at[1] == '/');
}

bool np_json_scan_comments(struct np_json_scan *state, const char *bytes, size_t blocks,
                           size_t avail, uint64_t offset, struct np_json_masks out)
{
	bool nul = false;
	for (size_t i = 0; i < blocks; i++)
		out.structure[i] = out.brackets[i] = out.odd[i] = 0;
	for (size_t at = 0; at < blocks * NP_JSON_BLOCK; at++) {
		size_t i = at / NP_JSON_BLOCK;
		uint64_t bit = 1ull << at % NP_JSON_BLOCK;
		unsigned class = classify((unsigned char)bytes[at]);
		nul |= class == (NUL | ODD);
		if (state->in_comment) {
			state->in_comment = bytes[at] != '\n';
		} else if (state->in_string) {
			bool ends = class & QUOTE && !state->escaped;
			state->escaped = class & BACKSLASH && !state->escaped;
			out.odd[i] |= class & ODD ? bit : 0;
			out.structure[i] |= ends ? bit : 0;
			state->in_string = ends ? 0 : ~0ull;
		} else if (comment_begins(bytes + at, bytes + avail)) {
			if (state->comments++ == 0)
				state->first_comment = offset + at;
			state->in_comment = true;
			state->scalar = 0;
		} else {
			bool scalar = !(class & (OP | SPACE | QUOTE));
			if (class & (OP | QUOTE) || (scalar && !state->scalar))
				out.structure[i] |= bit;
			if (class & OP && class & UPPER)
				out.brackets[i] |= bit;
			state->scalar = scalar;
			state->in_string = class & QUOTE ? ~0ull : 0;
		}
	}
	return nul;
}

/* ── AVX2 ───────────────────────────────────────────────────────────────────── */

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2,pclmul")))

AVX2 INLINE uint64_t join(__m256i low, __m256i high)
{
	return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
	                                                     << 32;
}

/*
 * Operators and white space by one table look-up each: the low nibble of a byte
 * picks the only byte with this nibble that is of the class. `{[` and `}]` differ
 * in bit 5 only, so the look-up compares with bit 5 set.
 */
AVX2 INLINE void classify_avx2(struct classes *c, __m256i low, __m256i high)
{
	const __m256i ops =
		_mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ':', '{', ',', '}', 0, 0, 0, 0, 0, 0,
	                         0, 0, 0, 0, 0, 0, ':', '{', ',', '}', 0, 0);
	const __m256i spaces =
		_mm256_setr_epi8(' ', 0, 0, 0, 0, 0, 0, 0, 0, '\t', '\n', 0, 0, '\r', 0,
	                         0, /* 0 matches nothing there */
	                         ' ', 0, 0, 0, 0, 0, 0, 0, 0, '\t', '\n', 0, 0, '\r', 0, 0);
	const __m256i bit5 = _mm256_set1_epi8(0x20), control = _mm256_set1_epi8(0x1f);
	const __m256i slash = _mm256_set1_epi8('\\'), quote = _mm256_set1_epi8('"');
#define BOTH(f)     join(f(low), f(high))
#define OPS(v)      _mm256_cmpeq_epi8(_mm256_or_si256(v, bit5), _mm256_shuffle_epi8(ops, v))
#define SPACES(v)   _mm256_cmpeq_epi8(v, _mm256_shuffle_epi8(spaces, v))
#define SLASHES(v)  _mm256_cmpeq_epi8(v, slash)
#define QUOTES(v)   _mm256_cmpeq_epi8(v, quote)
#define UPPERS(v)   _mm256_slli_epi16(v, 1)
#define CONTROLS(v) _mm256_cmpeq_epi8(_mm256_max_epu8(v, control), control)
#define ODDS(v)     _mm256_or_si256(_mm256_or_si256(CONTROLS(v), SLASHES(v)), v)
	c->backslash = BOTH(SLASHES);
	c->quote = BOTH(QUOTES);
	c->op = BOTH(OPS);
	c->space = BOTH(SPACES);
	c->upper = BOTH(UPPERS);
	c->odd = BOTH(ODDS);
}

AVX2 INLINE uint64_t prefix_xor_clmul(uint64_t bits)
{
	__m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)bits),
	                                       _mm_set1_epi8((char)0xff), 0);
	return (uint64_t)_mm_cvtsi128_si64(product);
}

AVX2 static bool scan_avx2(struct np_json_scan *shared, const char *bytes, size_t blocks,
                           struct np_json_masks out)
{
	struct np_json_scan state = *shared; /* in registers */
	__m256i least = _mm256_set1_epi8((char)0xff);
	for (size_t i = 0; i < blocks; i++) {
		const char *at = bytes + i * NP_JSON_BLOCK;
		prefetch(at);
		__m256i low = _mm256_loadu_si256((const __m256i *)(const void *)at);
		__m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(at + 32));
		struct classes c;
		classify_avx2(&c, low, high);
		least = _mm256_min_epu8(least, _mm256_min_epu8(low, high));
		uint64_t quote = c.quote & ~find_escaped(&state, c.backslash);
		emit(&state, &c, quote, prefix_xor_clmul(quote) ^ state.in_string, i, out);
	}
	*shared = state;
	return _mm256_movemask_epi8(_mm256_cmpeq_epi8(least, _mm256_setzero_si256())) != 0;
}

#endif

/* ── NEON ───────────────────────────────────────────────────────────────────── */

#if defined(__aarch64__)

/* Bit i of the result is lane i, which is all ones or 0: each lane keeps its own
 * bit of a byte, then three rounds of pairwise sums pack 64 lanes into 8 bytes. */
INLINE uint64_t pack(const uint8x16_t lanes[4])
{
	static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128,
	                                    1, 2, 4, 8, 16, 32, 64, 128};
	const uint8x16_t weight = vld1q_u8(weights);
	uint8x16_t a = vpaddq_u8(vandq_u8(lanes[0], weight), vandq_u8(lanes[1], weight));
	uint8x16_t b = vpaddq_u8(vandq_u8(lanes[2], weight), vandq_u8(lanes[3], weight));
	uint8x16_t sum = vpaddq_u8(a, b);
	sum = vpaddq_u8(sum, sum);
	return vgetq_lane_u64(vreinterpretq_u64_u8(sum), 0);
}

INLINE uint8x16_t lookup(const uint8_t table[16], uint8x16_t v)
{
	return vqtbl1q_u8(vld1q_u8(table), vandq_u8(v, vdupq_n_u8(0x0f)));
}

INLINE void classify_neon(struct classes *c, const uint8x16_t v[4])
{
	static const uint8_t ops[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ':', '{', ',', '}', 0, 0};
	static const uint8_t spaces[16] = {' ', 0,    0,    0, 0, 0,    0, 0,
	                                   0,   '\t', '\n', 0, 0, '\r', 0, 0};
	uint8x16_t slash[4], quote[4], op[4], space[4], upper[4], odd[4];
	for (int i = 0; i < 4; i++) {
		slash[i] = vceqq_u8(v[i], vdupq_n_u8('\\'));
		quote[i] = vceqq_u8(v[i], vdupq_n_u8('"'));
		op[i] = vceqq_u8(vorrq_u8(v[i], vdupq_n_u8(0x20)), lookup(ops, v[i]));
		space[i] = vceqq_u8(v[i], lookup(spaces, v[i]));
		upper[i] = vtstq_u8(v[i], vdupq_n_u8(0x40));
		uint8x16_t control = vcltq_u8(v[i], vdupq_n_u8(0x20));
		uint8x16_t high = vcgeq_u8(v[i], vdupq_n_u8(0x80));
		odd[i] = vorrq_u8(vorrq_u8(control, high), slash[i]);
	}
	c->backslash = pack(slash);
	c->quote = pack(quote);
	c->op = pack(op);
	c->space = pack(space);
	c->upper = pack(upper);
	c->odd = pack(odd);
}

static bool scan_neon(struct np_json_scan *state, const char *bytes, size_t blocks,
                      struct np_json_masks out)
{
	uint8x16_t least = vdupq_n_u8(0xff);
	for (size_t i = 0; i < blocks; i++) {
		const uint8_t *at = (const uint8_t *)bytes + i * NP_JSON_BLOCK;
		const uint8x16_t v[4] = {vld1q_u8(at), vld1q_u8(at + 16), vld1q_u8(at + 32),
		                         vld1q_u8(at + 48)};
		struct classes c;
		prefetch(at);
		classify_neon(&c, v);
		least = vminq_u8(least, vminq_u8(vminq_u8(v[0], v[1]), vminq_u8(v[2], v[3])));
		uint64_t quote = c.quote & ~find_escaped(state, c.backslash);
		emit(state, &c, quote, prefix_xor(quote) ^ state->in_string, i, out);
	}
	return vminvq_u8(least) == 0;
}

#endif

np_json_scan_fn *np_json_scan_for(enum np_simd level)
{
#if defined(__x86_64__)
	if (level == NP_SIMD_AVX2)
		return scan_avx2;
#elif defined(__aarch64__)
	if (level == NP_SIMD_NEON)
		return scan_neon;
#endif
	(void)level;
	return scan_plain;
}
