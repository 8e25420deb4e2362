/* communication.json and communication_matrix.json. */
#include "synth/write_comm.h"

static void put_ms(struct np_out *out, np_ns ns)
{
	if (ns == 0)
		np_out_char(out, '0');
	else
		np_out_short(out, ns, 6);
}

static void put_size(struct np_out *out, uint64_t bytes)
{
	if (bytes == 0)
		np_out_char(out, '0');
	else
		np_out_short(out, (int64_t)bytes, 6);
}

static void put_ratio(struct np_out *out, int64_t parts)
{
	if (parts == 0)
		np_out_char(out, '0');
	else
		np_out_short(out, parts, 4);
}

/* The exporter's f64 of us: quarters, of which one decimal is printed. */
static void put_f64_us(struct np_out *out, np_ns ns)
{
	static const char tails[4][4] = {".0", ".2", ".5", ".8"};
	int64_t quarters = (ns + 125) / 250;
	np_out_i64(out, quarters / 4);
	np_out_str(out, tails[quarters % 4]);
}

static void put_times(struct np_out *out, const struct np_synth_comm_info *info, bool total)
{
	np_out_lit(out, "{\"Communication Time Info\": {");
	if (!total) {
		np_out_lit(out, "\"Start Timestamp(us)\": ");
		put_f64_us(out, info->start_ns);
		np_out_lit(out, ", ");
	}
	static const char *const keys[] = {"Elapse", "Transit", "Wait", "Synchronization", "Idle"};
	const np_ns values[] = {info->elapse_ns, info->transit_ns, info->wait_ns, info->sync_ns,
	                        info->idle_ns};
	for (int i = 0; i < 5; i++) {
		np_out_char(out, '"');
		np_out_str(out, keys[i]);
		np_out_lit(out, " Time(ms)\": ");
		put_ms(out, values[i]);
		np_out_lit(out, ", ");
	}
	np_out_lit(out, "\"Wait Time Ratio\": ");
	put_ratio(out, np_synth_ratio(info->wait_ns, info->transit_ns));
	np_out_lit(out, ", \"Synchronization Time Ratio\": ");
	put_ratio(out, np_synth_ratio(info->sync_ns, info->transit_ns));
	np_out_lit(out, "}, \"Communication Bandwidth Info\": {");
}

static void put_bandwidth(struct np_out *out, const struct np_synth_bandwidth *link, bool total)
{
	np_out_lit(out, "{\"Transit Size(MB)\": ");
	put_size(out, link->len_bytes);
	np_out_lit(out, ", \"Transit Time(ms)\": ");
	put_ms(out, link->time_ns);
	if (!total) {
		np_out_lit(out, ", \"Bandwidth(GB/s)\": ");
		put_ratio(out, np_synth_gbps(link->len_bytes, link->time_ns));
		np_out_lit(out, ", \"Large Packet Ratio\": ");
		put_ratio(out,
		          link->count ? (link->large * 10000 + link->count / 2) / link->count : 0);
	}
	np_out_lit(out, ", \"Size Distribution\": {");
	for (uint32_t i = 0; i < link->n_buckets; i++) {
		np_out_str(out, i ? ", \"" : "\"");
		np_out_short(out, (int64_t)link->bucket[i].len_bytes, 6);
		np_out_lit(out, "\": [");
		np_out_u64(out, link->bucket[i].count);
		np_out_lit(out, ", ");
		put_ms(out, link->bucket[i].time_ns);
		np_out_char(out, ']');
	}
	np_out_lit(out, "}}");
}

static void put_info(struct np_out *out, const struct np_synth_comm_info *info, bool total)
{
	put_times(out, info, total);
	for (int k = 0; k < NP_LINK_TYPES; k++) {
		np_out_str(out, k ? ", \"" : "\"");
		np_out_str(out, np_synth_transport_names[k]);
		np_out_lit(out, "\": ");
		put_bandwidth(out, &info->links[k], total);
	}
	np_out_lit(out, "}}");
}

/* The operations of a step of one family, and their sum. */
static void put_family(struct np_out *out, const struct np_synth_run *run, uint32_t step, bool p2p)
{
	struct np_synth_comm_info total = {.start_ns = 0}, info;
	size_t from, to;
	bool any = !p2p;
	np_synth_step_items(run, step, &from, &to);
	for (size_t i = from; i < to; i++) {
		const struct np_synth_item *item = &run->items.v[i];
		char scratch[64];
		if (item->kind != NP_ITEM_COMM ||
		    np_synth_is_p2p((enum np_synth_coll)item->coll) != p2p)
			continue;
		any = true;
		np_synth_comm_info(run, item, &info);
		np_synth_comm_add(&total, &info);
		np_out_char(out, '"');
		np_out_str(out, np_synth_item_name(run, item, scratch));
		np_out_char(out, '@');
		np_out_u64(out, run->plan->groups[item->group].hash);
		np_out_lit(out, "\": ");
		put_info(out, &info, false);
		np_out_lit(out, ", ");
	}
	if (!any)
		return;
	np_out_lit(out, "\"Total Op Info\": ");
	put_info(out, &total, true);
}

static void put_step(struct np_out *out, const struct np_synth_run *run, uint32_t step)
{
	np_out_lit(out, "\"step");
	np_out_u64(out, run->steps[step].id);
	np_out_lit(out, "\": {\"p2p\": {");
	put_family(out, run, step, true);
	np_out_lit(out, "}, \"collective\": {");
	put_family(out, run, step, false);
	np_out_lit(out, "}}");
}

struct matrix_out {
	struct np_out *out;
	const struct np_synth_run *run;
	bool open; /* an object, that of: */
	bool p2p;  /* the family that is written */
	const char *place;
	uint32_t group;
	enum np_synth_coll coll;
};

static void put_matrix_row(void *ctx, const struct np_synth_matrix_row *row)
{
	struct matrix_out *self = ctx;
	struct np_out *out = self->out;
	char scratch[64];
	if (np_synth_is_p2p(row->coll) != self->p2p)
		return;
	if (!self->open || self->coll != row->coll || self->place != row->place ||
	    self->group != row->group) {
		np_out_str(out, self->open ? "}, \"" : "\"");
		np_out_str(out, np_synth_colls[row->coll].matrix);
		np_out_char(out, '-');
		np_out_str(out, row->place);
		np_out_char(out, '@');
		np_out_u64(out, self->run->plan->groups[row->group].hash);
		np_out_lit(out, "\": {\"");
		self->open = true;
		self->place = row->place;
		self->group = row->group;
		self->coll = row->coll;
	} else {
		np_out_lit(out, ", \"");
	}
	np_out_u64(out, row->src);
	np_out_char(out, '-');
	np_out_u64(out, row->dst);
	np_out_lit(out, "\": {\"Transport Type\": \"");
	np_out_str(out, row->transport);
	np_out_lit(out, "\", \"Transit Size(MB)\": ");
	put_size(out, row->len_bytes);
	np_out_lit(out, ", \"Transit Time(ms)\": ");
	put_ms(out, row->time_ns);
	np_out_lit(out, ", \"Bandwidth(GB/s)\": ");
	put_ratio(out, np_synth_gbps(row->len_bytes, row->time_ns));
	if (row->item) {
		np_out_lit(out, ", \"Op Name\": \"");
		np_out_str(out, np_synth_item_name(self->run, row->item, scratch));
		np_out_char(out, '"');
	}
	np_out_char(out, '}');
}

static enum np_status write_matrix(const struct np_synth_run *run, const char *dir,
                                   struct np_synth_stats *stats, struct np_err *err)
{
	struct np_out out;
	NP_TRY(np_out_open(&out, dir, "communication_matrix.json", err));
	np_out_char(&out, '{');
	for (uint32_t s = 0; s < run->plan->options.steps; s++) {
		np_out_str(&out, s ? ", \"step" : "\"step");
		np_out_u64(&out, run->steps[s].id);
		np_out_lit(&out, "\": {");
		for (int p2p = 1; p2p >= 0; p2p--) {
			struct matrix_out matrix = {.out = &out, .run = run, .p2p = p2p};
			np_out_str(&out, p2p ? "\"p2p\": {" : ", \"collective\": {");
			enum np_status status =
				np_synth_matrix(run, s, put_matrix_row, &matrix, err);
			if (status != NP_OK) {
				np_out_abandon(&out);
				return status;
			}
			np_out_str(&out, matrix.open ? "}}" : "}");
		}
		np_out_char(&out, '}');
	}
	np_out_char(&out, '}');
	return np_synth_finish(&out, stats, err);
}

enum np_status np_synth_write_comm(const struct np_synth_run *run, const char *dir,
                                   struct np_synth_stats *stats, struct np_err *err)
{
	if (run->level == 0 || run->n_comms == 0)
		return NP_OK;
	struct np_out out;
	NP_TRY(np_out_open(&out, dir, "communication.json", err));
	np_out_char(&out, '{');
	for (uint32_t s = 0; s < run->plan->options.steps; s++) {
		if (s)
			np_out_lit(&out, ", ");
		put_step(&out, run, s);
	}
	np_out_char(&out, '}');
	NP_TRY(np_synth_finish(&out, stats, err));
	return write_matrix(run, dir, stats, err);
}
