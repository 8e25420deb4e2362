/* What a call moves: two different numbers, see comm_sum.h. */
#include "collect/comm_sum.h"

__extension__ typedef unsigned __int128 u128;

/* bytes × a / b, rounded to the nearest */
static uint64_t scaled(uint64_t bytes, uint64_t a, uint64_t b)
{
	u128 all = ((u128)bytes * a + b / 2) / b;
	return all > INT64_MAX ? INT64_MAX : (uint64_t)all;
}

/* Operations that are one kind: coalesced, of objects, of several sizes. */
enum kind { OTHER, ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, REDUCE, SEND };

static enum kind kind_of(uint8_t op)
{
	switch (op) {
	case 1:
		return ALL_REDUCE;
	case 2:
	case 18:
		return BROADCAST;
	case 3:
	case 14:
	case 17:
		return ALL_GATHER;
	case 4:
	case 15:
		return REDUCE_SCATTER;
	case 5:
	case 6:
	case 16:
		return ALL_TO_ALL;
	case 7:
		return REDUCE;
	case 10:
		return SEND;
	default:
		return OTHER;
	}
}

enum np_clog_estimate np_clog_moved(uint8_t op, int32_t world, uint64_t bytes, uint64_t send_bytes,
                                    uint64_t *out)
{
	uint64_t w = world > 0 ? (uint64_t)world : 0;
	enum kind kind = kind_of(op);
	*out = 0;
	if (w == 0 || kind == OTHER || kind == REDUCE)
		return NP_COMM_NO_ESTIMATE;
	switch (kind) {
	case ALL_REDUCE:
		*out = scaled(bytes, 2 * (w - 1), w);
		return NP_COMM_GUIDE;
	case ALL_GATHER:
		*out = scaled(bytes, w - 1, 1);
		return NP_COMM_GUIDE;
	case REDUCE_SCATTER:
		*out = scaled(send_bytes, w - 1, w);
		return NP_COMM_DERIVED;
	case SEND:
		*out = w == 1 ? 0 : bytes;
		return NP_COMM_DERIVED;
	default:
		*out = scaled(bytes, w - 1, w);
		return NP_COMM_GUIDE;
	}
}

bool np_clog_bus(uint8_t op, int32_t world, const struct np_clog_cell *cell, uint64_t *out)
{
	uint64_t n = world > 0 ? (uint64_t)world : 0;
	*out = 0;
	if (n == 0)
		return false;
	switch (kind_of(op)) {
	case ALL_REDUCE:
		*out = scaled(cell->bytes, 2 * (n - 1), n);
		return true;
	case ALL_GATHER:
		*out = scaled(cell->recv_bytes, n - 1, n);
		return true;
	case REDUCE_SCATTER:
	case ALL_TO_ALL:
		*out = scaled(cell->send_bytes, n - 1, n);
		return true;
	case BROADCAST:
	case REDUCE:
		*out = cell->bytes;
		return true;
	default:
		return false;
	}
}
