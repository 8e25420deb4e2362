/*
 * Doubles as Python prints and rounds them, so that figures can be compared
 * with those of the official tools to the last character.
 *
 * Both are exact: what 128 bits hold is computed there (almost everything a
 * profile has), the rest by the C library.
 */
#ifndef NP_BASE_NUMBER_H
#define NP_BASE_NUMBER_H

#include <stddef.h>

enum { NP_PYTHON_CHARS = 32 };

/*
 * repr(value): the shortest text that reads back the same, of several the
 * nearest. "3.0", "0.0001", "1e-05", "1e+16", "nan", "inf", "-0.0". Ends in NUL;
 * returns its length, at most 24.
 */
size_t np_format_python(double value, char out[NP_PYTHON_CHARS]);

/*
 * round(value, decimals): the nearest multiple of 10^-decimals to the exact
 * value of the double, an exact half to the even one: 2.675 to 2.67, 2.5 to 2.
 * Negative `decimals` count as 0. NaN, infinities and the sign of 0 stay.
 */
double np_round_half_even(double value, int decimals);

#endif
