#include "base/seed.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

uint64_t np_hash_seed(void)
{
	uint64_t seed = 0;
	if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
		return seed;
	/* early in a machine's life, or in a sandbox: what the kernel gave this process */
	const void *bytes =
		(const void *)getauxval(AT_RANDOM); /* NOLINT(performance-no-int-to-ptr) */
	if (bytes)
		memcpy(&seed, bytes, sizeof seed);
	return seed;
}
