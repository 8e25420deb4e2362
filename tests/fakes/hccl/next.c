/* Two libraries with the same function: the first asks for the next one, as an interposer does.
 * NEXT_FIRST is put in front of the other. */
#include <dlfcn.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int np_test_who(void);
#ifdef NEXT_FIRST
EXPORT int np_test_who(void)
{
	int (*next)(void);
	*(void **)&next = dlsym(RTLD_NEXT, "np_test_who");
	return next ? 10 + next() : -1;
}

/* … and RTLD_DEFAULT, which depends on the scope of who asks: its own is local. */
EXPORT int np_test_local(void);
EXPORT int np_test_local(void)
{
	int (*found)(void);
	*(void **)&found = dlsym(RTLD_DEFAULT, "np_test_only_second");
	return found ? found() : -1;
}
#else
EXPORT int np_test_who(void)
{
	return 2;
}

EXPORT int np_test_only_second(void);
EXPORT int np_test_only_second(void)
{
	return 42;
}
#endif
