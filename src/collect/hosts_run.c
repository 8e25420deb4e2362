#include "collect/hosts_run.h"

#include "base/pool.h"

struct work {
	const struct np_hosts *hosts;
	const struct np_ssh_options *ssh;
	np_host_job *job;
	void *ctx;
	struct np_host_result *results;
};

static void run_one(void *arg, size_t i)
{
	struct work *work = arg;
	struct np_host_result *result = &work->results[i];
	struct np_transport *transport = NULL;
	*result = (struct np_host_result){0};
	if (work->hosts && work->hosts->v.n) {
		result->status =
			np_transport_ssh(&work->hosts->v.v[i], work->ssh, &transport, &result->err);
	} else {
		result->status = np_transport_local(&transport, &result->err);
		if (result->status == NP_OK && work->ssh)
			transport->cancel = work->ssh->cancel;
	}
	if (result->status == NP_OK)
		result->status = work->job(work->ctx, i, transport, &result->err);
	np_transport_close(transport);
}

size_t np_hosts_run(const struct np_hosts *hosts, const struct np_ssh_options *ssh,
                    unsigned at_once, np_host_job *job, void *ctx, struct np_host_result *results)
{
	struct work work = {hosts, ssh, job, ctx, results};
	size_t n = hosts && hosts->v.n ? hosts->v.n : 1, failed = 0;
	at_once = at_once ? at_once : NP_HOSTS_AT_ONCE;
	np_pool_run(n < at_once ? (unsigned)n : at_once, n, run_one, &work);
	for (size_t i = 0; i < n; i++)
		failed += results[i].status != NP_OK;
	return failed;
}
