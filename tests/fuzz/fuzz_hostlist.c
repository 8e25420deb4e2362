/* Any bytes as the lines of a list of hosts. */
#include <stdlib.h>
#include <string.h>

#include "collect/hostlist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct np_hosts hosts;
	struct np_err err = {0};
	np_hosts_init(&hosts);
	enum np_status status =
		np_hosts_parse_lines(&hosts, (np_str){(const char *)data, size}, "hosts", &err);
	if (status != NP_OK && err.msg[0] == '\0')
		abort();
	if (hosts.v.n > NP_HOSTS_MAX)
		abort();
	for (size_t i = 0; i < hosts.v.n; i++) {
		const struct np_host *host = &hosts.v.v[i];
		/* nothing that ssh could take for an option, and nothing for a shell */
		if (host->name[0] == '-' || host->name[0] == '\0' || host->port > 65535 ||
		    strlen(host->text) > NP_HOST_MAX_BYTES ||
		    strpbrk(host->name, " \t\n\r'\"`$;&|<>()[]{}*?!\\/") ||
		    (host->user && (host->user[0] == '-' || strpbrk(host->user, " '\"`;|&"))))
			abort();
	}
	np_hosts_release(&hosts);
	return 0;
}
