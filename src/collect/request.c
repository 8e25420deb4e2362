#include "collect/request.h"

struct np_request_place np_request_of_call(const struct np_request_shape *shape, uint64_t call)
{
	uint64_t calls = shape->steps_per_request * shape->forwards_per_step;
	uint64_t within = call % calls;
	return (struct np_request_place){.call = call,
	                                 .request = call / calls + 1,
	                                 .step = within / shape->forwards_per_step + 1,
	                                 .forward = within % shape->forwards_per_step + 1};
}

uint64_t np_request_call_of(const struct np_request_shape *shape, uint64_t request, uint64_t step,
                            uint64_t forward)
{
	return ((request - 1) * shape->steps_per_request + step - 1) * shape->forwards_per_step +
	       forward - 1;
}

static const struct np_column columns[] = {
	{"call", "", NP_COL_INT, "index k of the call of forward(), counted from 0"},
	{"request", "", NP_COL_INT, "floor(k / n) + 1 with n calls per request"},
	{"step", "", NP_COL_INT,
         "denoising step in its request, from 1: (k mod n) + 1 where a "
         "step is one forward"},
	{"forward", "", NP_COL_INT, "forward in its step, from 1"},
	{"requests_needed", "", NP_COL_INT, "how many requests must be sent: as many as `request`"},
};

static enum np_status check(const struct np_plan_request *self, struct np_err *err)
{
	const struct np_request_shape *shape = &self->shape;
	if (shape->steps_per_request < 1 || shape->steps_per_request > NP_REQUEST_STEPS_MAX)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "--steps-per-request wants 1 … %d, the num_inference_steps of a "
		                  "request",
		                  NP_REQUEST_STEPS_MAX);
	if (shape->forwards_per_step < 1 || shape->forwards_per_step > 2)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "--forwards-per-step is 1, or 2 where "
		                  "guidance is a forward of its own");
	if (self->by_call && self->call > NP_REQUEST_CALL_MAX)
		return np_err_set(err, NP_E_USAGE, NULL, "--call is too large");
	if (self->by_call)
		return NP_OK;
	if (self->request < 1 || self->request > NP_REQUEST_CALL_MAX / NP_REQUEST_STEPS_MAX)
		return np_err_set(err, NP_E_USAGE, NULL, "--request is counted from 1");
	if (self->step < 1 || self->step > shape->steps_per_request)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "--step is 1 … %llu in a request of that "
		                  "many steps",
		                  (unsigned long long)shape->steps_per_request);
	return NP_OK;
}

static void add_row(struct np_table *table, const struct np_request_shape *shape, uint64_t call)
{
	struct np_request_place place = np_request_of_call(shape, call);
	np_cell_int(table, (int64_t)place.call);
	np_cell_int(table, (int64_t)place.request);
	np_cell_int(table, (int64_t)place.step);
	np_cell_int(table, (int64_t)place.forward);
	np_cell_int(table, (int64_t)place.request);
}

static void tell_cold(struct np_report *report, const struct np_request_shape *shape, uint64_t call)
{
	uint64_t calls = shape->steps_per_request * shape->forwards_per_step;
	struct np_finding *finding = np_report_finding(report, "COLD_REQUEST", NP_WARNING,
	                                               "call %llu is in the first request, which "
	                                               "is cold: it compiles, allocates and fills "
	                                               "caches",
	                                               (unsigned long long)call);
	unsigned long long second = call + calls;
	np_finding_advice(finding, "take the same step of the second request");
	np_finding_command(finding,
	                   "npuprof plan request --call %llu --steps-per-request %llu "
	                   "--forwards-per-step %llu",
	                   second, (unsigned long long)shape->steps_per_request,
	                   (unsigned long long)shape->forwards_per_step);
}

static void add_notes(const struct np_plan_request *self, struct np_report *report)
{
	np_report_note(report,
	               "calls are counted from 0; a hook that counts from 1 wants one more");
	if (self->shape.forwards_per_step == 1)
		np_report_note(report, "one forward per step is assumed: where guidance (CFG) is a "
		                       "forward of its own, use --forwards-per-step 2");
	np_report_note(report, "loading the weights takes most of such a run: fewer requests save "
	                       "little of it");
	np_report_note(report, "give every request another prompt: the text encoder's output for "
	                       "one that was seen is cached, and its work is missing");
	np_report_note(report, "the capture holds one step when its span is the Stage of "
	                       "step_trace_time.csv");
}

enum np_status np_plan_request(const struct np_plan_request *self, struct np_report *report,
                               struct np_err *err)
{
	NP_TRY(check(self, err));
	struct np_table *table =
		NP_REPORT_TABLE(report, "request", "Call, request and step", columns);
	uint64_t first = self->call, n = 1;
	if (!self->by_call) {
		first = np_request_call_of(&self->shape, self->request, self->step, 1);
		n = self->shape.forwards_per_step;
	}
	for (uint64_t i = 0; i < n; i++)
		add_row(table, &self->shape, first + i);
	if (np_request_of_call(&self->shape, first).request == 1)
		tell_cold(report, &self->shape, first);
	add_notes(self, report);
	return NP_OK;
}
