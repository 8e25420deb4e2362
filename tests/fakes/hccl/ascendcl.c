/* libascendcl.so of the tests: the two functions that the recorder asks. A stream's id is the
 * number at its address. With FAKE_RAISE=1 a signal comes at each question. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static int raises;

__attribute__((constructor)) static void at_load(void)
{
	raises = getenv("FAKE_RAISE") != NULL;
}

EXPORT int aclrtStreamGetId(void *stream, int32_t *out);
EXPORT int aclrtStreamGetId(void *stream, int32_t *out)
{
	if (raises)
		(void)raise(SIGUSR1);
	*out = *(const int32_t *)stream;
	errno = 12;
	return *out < 0 ? 107000 : 0;
}

EXPORT int aclrtGetDevice(int32_t *out);
EXPORT int aclrtGetDevice(int32_t *out)
{
	const char *device = getenv("FAKE_DEVICE");
	*out = device ? (int32_t)strtol(device, NULL, 10) : 5;
	errno = 13;
	return 0;
}
