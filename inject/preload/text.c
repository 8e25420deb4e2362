#include "text.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK_BYTES = 64 * 1024 };

const struct np_text np_text_no_room;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct np_text *texts[NP_TEXT_MAX];
static uint32_t text_count;
static char *block; /* of mmap(): a user's malloc() is none of our business */
static size_t block_used = BLOCK_BYTES;

static void *take(size_t bytes)
{
	bytes = (bytes + 7) & ~(size_t)7;
	if (bytes > BLOCK_BYTES - block_used) {
		void *fresh = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE,
		                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (fresh == MAP_FAILED)
			return NULL;
		block = fresh;
		block_used = 0;
	}
	void *out = block + block_used;
	block_used += bytes;
	return out;
}

static const struct np_text *intern_locked(const char *bytes, size_t length)
{
	for (uint32_t i = 0; i < text_count; i++)
		if (texts[i]->length == length && memcmp(texts[i]->bytes, bytes, length) == 0)
			return texts[i];
	struct np_text *text = text_count < NP_TEXT_MAX ? take(sizeof *text + length + 1) : NULL;
	if (!text)
		return &np_text_no_room;
	text->length = (uint32_t)length;
	text->slot = text_count;
	memcpy(text->bytes, bytes, length);
	text->bytes[length] = '\0';
	texts[text_count++] = text;
	return text;
}

const struct np_text *np_text_intern(const char *bytes, size_t length)
{
	if (length == 0)
		return NULL;
	if (length > NP_TEXT_BYTES_MAX)
		length = NP_TEXT_BYTES_MAX;
	(void)pthread_mutex_lock(&lock);
	const struct np_text *text = intern_locked(bytes, length);
	(void)pthread_mutex_unlock(&lock);
	return text;
}

void np_text_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
