/* A kernel before 4.14, for who asks: it does not know MADV_WIPEONFORK. */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int madvise(void *at, size_t length, int advice)
{
	if (advice == MADV_WIPEONFORK) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_madvise, at, length, advice);
}
