#include "advice/choose.h"

void np_advice_least_bandwidth(const struct np_advice *self, struct np_choice *out)
{
	(void)self;
	(void)out;
}
