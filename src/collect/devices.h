/*
 * `npuprof devices`: asks npu-smi on hosts, tells what is there, and picks free ones.
 */
#ifndef NP_COLLECT_DEVICES_H
#define NP_COLLECT_DEVICES_H

#include "collect/hosts_run.h"
#include "collect/npu_pick.h"
#include "collect/quote.h"
#include "report/report.h"

struct np_devices_options {
	const struct np_hosts *hosts;         /* none: this machine */
	const struct np_ssh_options *ssh;     /* may be NULL */
	const struct np_container *container; /* NULL: on the host itself */
	const char *from;                     /* a recorded output instead, "-" stdin; NULL */
	uint64_t pick;                        /* how many; 0: none */
	uint64_t max_used_mb;                 /* of a free device; 0: the default */
	uint64_t timeout_ms;                  /* of npu-smi; 0: 60 s */
	bool span;                            /* --span-groups */
	unsigned at_once;                     /* hosts; 0: the default */
};

/*
 * What npu-smi says on one transport, parsed. One round trip: info, -m and topo; the last two
 * may fail. Errors: those of np_transport_run(); E_NOTFOUND: no npu-smi; E_FORMAT.
 */
enum np_status np_devices_ask(struct np_transport *transport, const struct np_container *container,
                              uint64_t timeout_ms, struct np_npu_set *out, struct np_err *err);

/*
 * Tables `devices`, `processes`, `sensors` and, with pick, `picked`; findings DEVICES_NONE_FREE,
 * DEVICE_UNHEALTHY, DEVICES_HOST_FAILED. The report's exit_code: 4 where a host or its output
 * could not be read, else 1 where a pick found too few, else 0. With a single source that cannot
 * be read the error itself is returned.
 */
enum np_status np_devices_report(const struct np_devices_options *options, struct np_report *report,
                                 struct np_err *err);

#endif
