/*
 * Functions that cannot be used safely, or that hide a dependency on the
 * locale or on static memory. Included in front of every file of ours.
 */
#ifndef NP_BASE_BANNED_H
#define NP_BASE_BANNED_H

/* their headers first, so that only our own uses are caught */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef NP_WITH_XLSXWRITER /* its headers use some, so those go first */
#include <xlsxwriter.h>
#endif

/* some are macros where the headers check lengths; those go first */
#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#undef sprintf
#undef vsprintf
#undef strtok
#undef gets
#undef atoi
#undef atol
#undef atoll
#undef atof
#undef gmtime
#undef localtime
#undef ctime
#undef asctime
#undef tmpnam
#undef tempnam
#undef mktemp

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok gets atoi atol atoll atof
#pragma GCC poison gmtime localtime ctime asctime tmpnam tempnam mktemp

#endif
