/*
 * Runs a command through a transport, for tests/e2e/collect_ssh.py.
 *
 *   transport_probe [options] -- ARGV…
 *     --host LIST          hosts; without it the local transport
 *     --config FILE        ssh's -F          --ssh-option NAME=VALUE
 *     --insecure           take unknown host keys
 *     --container NAME     in a container    --input FILE   stdin, `-`: as bytes "hello"
 *     --timeout MS         --repeatable      --tries N      --delay MS
 *     --count N            the command N times on one transport
 *     --cancel MS          sets the flag after that time
 *     --out DIR            DIR/<host number>.out and .err get the streams
 *
 * One line of JSON per host and run on stdout.
 */
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/hosts_run.h"
#include "collect/quote.h"

struct probe {
	const char *config, *hosts, *container, *input, *out;
	const char *options[16];
	size_t n_options;
	bool insecure, repeatable;
	unsigned long timeout, tries, delay, count, cancel;
	const char *const *argv;
	atomic_bool stop;
	pthread_mutex_t lock;
	struct np_hosts list;
};

static void save(const struct probe *self, size_t i, const char *suffix, const struct np_buf *text)
{
	char path[4096];
	if (!self->out)
		return;
	(void)snprintf(path, sizeof path, "%s/%zu.%s", self->out, i, suffix);
	FILE *file = fopen(path, "we");
	if (!file)
		abort();
	(void)fwrite(text->ptr ? text->ptr : "", 1, text->len, file);
	(void)fclose(file);
}

static void print_json(const char *text)
{
	(void)putchar('"');
	for (const char *p = text; *p; p++) {
		if (*p == '"' || *p == '\\')
			(void)printf("\\%c", *p);
		else if ((unsigned char)*p < 32)
			(void)printf("\\u%04x", (unsigned)*p);
		else
			(void)putchar(*p);
	}
	(void)putchar('"');
}

static enum np_status job(void *ctx, size_t i, struct np_transport *transport, struct np_err *err)
{
	struct probe *self = ctx;
	struct np_arena arena;
	struct np_container container = {0};
	enum np_status status = NP_OK;
	np_arena_init(&arena);
	struct np_command command = {
		.argv = self->argv, .timeout_ms = self->timeout, .repeatable = self->repeatable};
	if (self->input && strcmp(self->input, "-") == 0)
		command.input =
			(struct np_source){.kind = NP_SOURCE_BYTES, .bytes = NP_STR("hello")};
	else if (self->input)
		command.input = (struct np_source){.kind = NP_SOURCE_FD,
		                                   .fd = open(self->input, O_RDONLY | O_CLOEXEC)};
	if (self->container && np_container_parse(self->container, &container, err) == NP_OK)
		command.argv = np_container_argv(&arena, &container, self->argv, self->input);
	for (unsigned long n = 0; n < self->count; n++) {
		struct np_outcome outcome;
		struct np_err own = {0};
		status = np_transport_run(transport, &command, &outcome, &own);
		(void)pthread_mutex_lock(&self->lock);
		(void)printf(
			"{\"host\": %zu, \"kind\": \"%s\", \"result\": \"%s\", \"status\": %d, "
			"\"link\": \"%s\", \"tries\": %u, \"message\": ",
			i, transport->ops->kind, np_status_name(status), outcome.status,
			np_link_name(outcome.link), outcome.tries);
		print_json(status == NP_OK ? "" : own.msg);
		(void)printf("}\n");
		(void)fflush(stdout);
		(void)pthread_mutex_unlock(&self->lock);
		save(self, i, "out", &outcome.out);
		save(self, i, "err", &outcome.err);
		np_outcome_release(&outcome);
	}
	if (command.input.kind == NP_SOURCE_FD)
		(void)close(command.input.fd);
	np_arena_release(&arena);
	return status;
}

static void *cancel_later(void *ctx)
{
	struct probe *self = ctx;
	(void)np_sleep_ms(self->cancel, NULL);
	atomic_store(&self->stop, true);
	return NULL;
}

static unsigned long number(const char *text)
{
	return strtoul(text, NULL, 10);
}

static void take(struct probe *self, int letter, const char *value)
{
	switch (letter) {
	case 'h':
		self->hosts = value;
		break;
	case 'f':
		self->config = value;
		break;
	case 'o':
		self->options[self->n_options++ % 15] = value;
		break;
	case 'k':
		self->insecure = true;
		break;
	case 'c':
		self->container = value;
		break;
	case 'i':
		self->input = value;
		break;
	case 't':
		self->timeout = number(value);
		break;
	case 'r':
		self->repeatable = true;
		break;
	case 'n':
		self->tries = number(value);
		break;
	case 'd':
		self->delay = number(value);
		break;
	case 'm':
		self->count = number(value);
		break;
	case 'x':
		self->cancel = number(value);
		break;
	case 'w':
		self->out = value;
		break;
	default:
		exit(2);
	}
}

static void parse(struct probe *self, int argc, char **argv)
{
	static const struct option options[] = {
		{"host", 1, NULL, 'h'},       {"config", 1, NULL, 'f'},
		{"ssh-option", 1, NULL, 'o'}, {"insecure", 0, NULL, 'k'},
		{"container", 1, NULL, 'c'},  {"input", 1, NULL, 'i'},
		{"timeout", 1, NULL, 't'},    {"repeatable", 0, NULL, 'r'},
		{"tries", 1, NULL, 'n'},      {"delay", 1, NULL, 'd'},
		{"count", 1, NULL, 'm'},      {"cancel", 1, NULL, 'x'},
		{"out", 1, NULL, 'w'},        {NULL, 0, NULL, 0},
	};
	for (int letter; (letter = getopt_long(argc, argv, "+", options, NULL)) != -1;)
		take(self, letter, optarg);
	self->argv = (const char *const *)(argv + optind);
}

int main(int argc, char **argv)
{
	static struct probe self = {
		.count = 1, .tries = 1, .delay = 20, .lock = PTHREAD_MUTEX_INITIALIZER};
	static struct np_host_result results[NP_HOSTS_MAX];
	struct np_err err = {0};
	pthread_t canceller;
	parse(&self, argc, argv);
	np_hosts_init(&self.list);
	if (self.hosts &&
	    np_hosts_parse(&self.list, np_str_of(self.hosts), "HOST", &err) != NP_OK) {
		(void)fprintf(stderr, "%s: %s\n", err.where, err.msg);
		return 2;
	}
	const struct np_ssh_options ssh = {
		.config = self.config,
		.options = self.options,
		.accept_unknown_host_key = self.insecure,
		.connect_timeout_s = 5,
		.cancel = &self.stop,
		.retry = {.tries = (unsigned)self.tries, .delay_ms = self.delay},
	};
	if (self.cancel && pthread_create(&canceller, NULL, cancel_later, &self) != 0)
		abort();
	size_t failed = np_hosts_run(&self.list, &ssh, 0, job, &self, results);
	if (failed && results[0].status == NP_E_USAGE)
		(void)fprintf(stderr, "%s\n", results[0].err.msg);
	if (self.cancel)
		(void)pthread_join(canceller, NULL);
	np_hosts_release(&self.list);
	return failed ? 1 : 0;
}
