#include "collect/ssh_errors.h"

#include "collect/quote.h"

/*
 * First match wins. `advice` may hold these: %c the ssh command line, %h the host as known_hosts
 * names it, %s the words to select port and host for ssh-keyscan.
 */
static const struct saying {
	const char *said;
	enum np_link link;
	const char *advice;
} sayings[] = {
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", NP_LINK_HOST_KEY_CHANGED,
         "the host shows another key than the one in known_hosts: it was set up anew, or somebody "
         "stands between. Ask its administrator, then: ssh-keygen -R %h"},
	{"Host key verification failed", NP_LINK_HOST_KEY_UNKNOWN,
         "the host's key is not in known_hosts. Compare its fingerprint and accept it once: %c "
         "true"},
	{"host key is known for", NP_LINK_HOST_KEY_UNKNOWN,
         "the host's key is not in known_hosts. Compare its fingerprint and accept it once: %c "
         "true"},
	{"Too many authentication failures", NP_LINK_AUTH,
         "the agent offers too many keys; name one: --ssh-option IdentitiesOnly=yes --ssh-option "
         "IdentityFile=…"},
	{"Permission denied (", NP_LINK_AUTH,
         "no key was accepted (npuprof never asks for a password). Load one or install it: "
         "ssh-add, or ssh-copy-id %s"},
	{"Permission denied, please try again", NP_LINK_AUTH,
         "no key was accepted. Load one or install it: ssh-add, or ssh-copy-id %s"},
	{"No supported authentication methods", NP_LINK_AUTH, "look at: %c -v true"},
	{"Could not resolve hostname", NP_LINK_NAME,
         "no such name in DNS or in the ssh configuration; look at: ssh -G %s"},
	{"Name or service not known", NP_LINK_NAME, "look at: ssh -G %s"},
	{"Bad configuration option", NP_LINK_CONFIG, "look at: ssh -G %s"},
	{"Bad owner or permissions", NP_LINK_CONFIG, "look at: ls -l ~/.ssh/config"},
	{"Can't open user config file", NP_LINK_CONFIG, "the file of --ssh-config cannot be read"},
	{"terminating, ", NP_LINK_CONFIG, "look at: ssh -G %s"},
	{"no argument after keyword", NP_LINK_CONFIG, "look at: ssh -G %s"},
	{"unsupported option", NP_LINK_CONFIG, "look at: ssh -G %s"},
	{"Connection refused", NP_LINK_UNREACHABLE,
         "nothing listens there: is sshd running, and is the port right? Look at: %c -v true"},
	{"timed out", NP_LINK_UNREACHABLE,
         "no answer: is the host up, and does a firewall let you through? Look at: %c -v true"},
	{"No route to host", NP_LINK_UNREACHABLE, "look at: %c -v true"},
	{"Network is unreachable", NP_LINK_UNREACHABLE, "look at: %c -v true"},
	{"kex_exchange_identification", NP_LINK_UNREACHABLE,
         "the server hung up at once: too many connections at a time (MaxStartups), or a "
         "firewall. Look at: %c -v true"},
	{"Connection reset by", NP_LINK_UNREACHABLE, "look at: %c -v true"},
	{"Connection closed by", NP_LINK_UNREACHABLE,
         "the server hung up: look at its log, and at: %c -v true"},
};

static np_str first_line(np_str text)
{
	np_str line = {0};
	while (text.len && (line.len == 0 || line.ptr[0] == '@'))
		line = np_str_trim(np_str_cut(text, '\n', &text));
	if (line.len > 200)
		line.len = 200;
	return line;
}

/* The line of ssh's talk that holds `part`. */
static np_str line_with(np_str text, const char *part)
{
	while (text.len) {
		np_str line = np_str_trim(np_str_cut(text, '\n', &text));
		if (np_str_contains(line, np_str_of(part)))
			return line.len > 200 ? np_str_sub(line, 0, 200) : line;
	}
	return (np_str){0};
}

static void add_host(struct np_buf *out, const struct np_host *host)
{
	struct np_buf name = {0};
	if (host->port && host->port != 22)
		np_buf_printf(&name, "[%s]:%u", host->name, host->port);
	else
		np_buf_add_cstr(&name, host->name);
	np_quote_word(out, np_buf_str(&name));
	np_buf_release(&name);
}

static void add_select(struct np_buf *out, const struct np_host *host)
{
	if (host->port)
		np_buf_printf(out, "-p %u ", host->port);
	if (host->user)
		np_buf_printf(out, "%s@", host->user);
	np_quote_word(out, np_str_of(host->name));
}

static void add_advice(struct np_buf *out, const char *advice, const struct np_host *host,
                       const char *connect)
{
	for (const char *p = advice; *p; p++) {
		if (*p != '%')
			np_buf_add_char(out, *p);
		else if (*++p == 'c')
			np_buf_add_cstr(out, connect);
		else if (*p == 'h')
			add_host(out, host);
		else
			add_select(out, host);
	}
}

enum np_link np_ssh_explain(np_str talk, bool begun, const struct np_host *host,
                            const char *connect, struct np_buf *out)
{
	if (begun) {
		np_str line = first_line(talk);
		np_buf_printf(out, "the connection was lost while the command ran%s%.*s",
		              line.len ? ": " : "", NP_FMT(line));
		return NP_LINK_LOST;
	}
	for (size_t i = 0; i < sizeof sayings / sizeof *sayings; i++) {
		np_str line = line_with(talk, sayings[i].said);
		if (!line.len)
			continue;
		if (line.ptr[0] == '@')
			line = NP_STR("host key verification failed");
		np_buf_printf(out, "%.*s; ", NP_FMT(line));
		add_advice(out, sayings[i].advice, host, connect);
		return sayings[i].link;
	}
	np_str line = first_line(talk);
	np_buf_printf(out, "ssh failed%s%.*s; look at: %s -v true", line.len ? ": " : "",
	              NP_FMT(line), connect);
	return NP_LINK_UNREACHABLE;
}
