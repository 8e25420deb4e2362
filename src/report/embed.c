/*
 * The assembler copies the files as they are; C has no #embed yet, and an array
 * of numbers would be a generated file five times their size. CMakeLists.txt
 * gives NP_ROOT, rebuilds when a file changes, and keeps this file out of
 * link-time optimisation, which does not see symbols made by the assembler.
 */
#include "report/embed.h"

#ifndef NP_ROOT
#define NP_ROOT "" /* for tools that do not know the build */
#endif

#define EMBED(name, path)                                                                 \
	__asm__(".pushsection .rodata\n"                                                  \
	        ".hidden " #name "_begin\n.global " #name "_begin\n" #name "_begin:\n"    \
	        ".incbin \"" NP_ROOT path "\"\n"                                          \
	        ".hidden " #name "_end\n.global " #name "_end\n" #name "_end:\n.byte 0\n" \
	        ".popsection\n");                                                         \
	extern const char name##_begin[] __attribute__((visibility("hidden")));           \
	extern const char name##_end[] __attribute__((visibility("hidden")))

EMBED(np_file_po, "po/zh_CN.po");
EMBED(np_file_script, "src/report/html_bundle.js");
EMBED(np_file_style, "src/report/html_bundle.css");

/* The two symbols are the ends of one object, which the compiler cannot know. */
static np_str between(const char *begin, const char *end)
{
	return (np_str){begin, (size_t)((uintptr_t)end - (uintptr_t)begin)};
}

np_str np_embedded_po(void)
{
	return between(np_file_po_begin, np_file_po_end);
}

np_str np_embedded_script(void)
{
	return between(np_file_script_begin, np_file_script_end);
}

np_str np_embedded_style(void)
{
	return between(np_file_style_begin, np_file_style_end);
}
