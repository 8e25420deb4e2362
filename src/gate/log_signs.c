#include "gate/log_signs.h"

#include "report/lang.h"

const char np_log_fatal_advice[] = NP_N(
	"Copy the capture to a local disk and export again in a process of its own, with "
	"analyse(); "
	"when every parser failed, the output file system is the suspect (R62). After an incorrect "
	"schedule collect again with one more prof.step() (R65).");
static const char port_advice[] = NP_N(
	"Another process holds the port. `ss -tlnp` in a container may not show it, because HCCL's "
	"ports can be those of the RoCE card. Set the range before the start, or run one job "
	"at a time.");
static const char crlf_advice[] = NP_N("The script has Windows line ends; convert it.");
static const char crlf_command[] = "sed -i 's/\\r$//' SCRIPT";
static const char port_command[] = "export HCCL_NPU_SOCKET_PORT_RANGE=20000-21000";

/* The order decides: a longer text stands before one that is a part of it. */
static const struct np_log_sign signs[] = {
	{.text = "run failed",
         .fatal = true,
         .meaning = NP_N("a parser failed; look for the first one, the rest follow from it")},
	{.text = "current state is WARMUP",
         .fatal = true,
         .meaning = NP_N("Incorrect schedule: stopped in the warm-up, the data are empty")},
	{.text = "current state is RECORD_AND_SAVE",
         .meaning = NP_N("Incorrect schedule: one more prof.step() would have closed the window")},
	{.text = "current state is RECORD",
         .fatal = true,
         .meaning =
                 NP_N("Incorrect schedule: stopped while recording, the data may be incomplete")},
	{.text = "WARMUP followed by NONE",
         .fatal = true,
         .meaning = NP_N("Incorrect schedule: the warm-up is followed by nothing to record, and "
                         "nothing is exported")},
	{.text = "RECORD followed by NONE",
         .fatal = true,
         .meaning = NP_N("Incorrect schedule: the recording has no last step, and nothing is "
                         "exported")},
	{.text = "RECORD followed by WARMUP",
         .fatal = true,
         .meaning = NP_N("Incorrect schedule: the recording goes back to the warm-up, and "
                         "nothing is exported")},
	{.text = "Failed to export CANN",
         .fatal = true,
         .meaning = NP_N("msprof could not export; is CANN's set_env.sh sourced?")},
	{.text = "The collected data has been lost",
         .fatal = true,
         .meaning = NP_N("the raw stream is cut")},
	{.text = "cannot be parsed during the daemon process",
         .fatal = true,
         .meaning = NP_N("analyse() in a daemon process writes nothing; run it in a process of its "
                         "own")},
	{.text = "Call analyse failed", .fatal = true, .meaning = NP_N("analyse() failed")},
	{.text = "Failed to generate", .meaning = NP_N("a parser could not write its file")},
	{.text = "Failed to get acl to npu flow events",
         .meaning = NP_N("host and device cannot be joined")},
	{.text = "memory record(s) are incomplete",
         .meaning = NP_N("allocations without a release in the window")},
	{.text = "UB LINK ERROR",
         .about_run = true,
         .meaning = NP_N("a link of the card failed for a moment"),
         .advice = NP_N("Run again; compare only runs on the same group of cards (R11)."),
         .command = "npu-smi info"},
	{.text = "EADDRINUSE",
         .about_run = true,
         .meaning = NP_N("a port is in use"),
         .advice = port_advice,
         .command = port_command},
	{.text = "Address already in use",
         .about_run = true,
         .meaning = NP_N("a port is in use"),
         .advice = port_advice,
         .command = port_command},
	{.text = "16666",
         .also = "port",
         .about_run = true,
         .meaning = NP_N("HCCL's default port 16666 is taken"),
         .advice = port_advice,
         .command = port_command},
	{.text = "16666",
         .also = "bind",
         .about_run = true,
         .meaning = NP_N("HCCL's default port 16666 is taken"),
         .advice = port_advice,
         .command = port_command},
	{.text = "$'\\r'",
         .about_run = true,
         .meaning = NP_N("a script with Windows line ends"),
         .advice = crlf_advice,
         .command = crlf_command},
	{.text = "^M: bad interpreter",
         .about_run = true,
         .meaning = NP_N("a script with Windows line ends"),
         .advice = crlf_advice,
         .command = crlf_command},
	{.text = "\\r",
         .also = "No such file or directory",
         .about_run = true,
         .meaning = NP_N("a script with Windows line ends"),
         .advice = crlf_advice,
         .command = crlf_command},
	{.text = "collected using the 'msprof' tool",
         .about_run = true,
         .meaning = NP_N("PROFILER_SAMPLECONFIG is set: msprof collects, torch_npu's profiler does "
                         "nothing"),
         .advice = NP_N("Run without `msprof` in front, and without its variables."),
         .command = "unset PROFILER_SAMPLECONFIG PROFILING_MODE"},
	{.text = "NPU out of memory",
         .about_run = true,
         .meaning = NP_N("the card's memory is full"),
         .advice = NP_N("A process of an earlier run may still hold the card; its table of "
                        "processes tells."),
         .command = "npu-smi info"},
};

size_t np_log_n_signs(void)
{
	return sizeof signs / sizeof *signs;
}

const struct np_log_sign *np_log_sign(size_t i)
{
	return i < np_log_n_signs() ? &signs[i] : NULL;
}

size_t np_log_sign_of(np_str line)
{
	for (size_t i = 0; i < np_log_n_signs(); i++)
		if (np_str_contains(line, np_str_of(signs[i].text)) &&
		    (!signs[i].also || np_str_icontains(line, np_str_of(signs[i].also))))
			return i;
	return np_log_n_signs();
}

/* Where the sequence that begins at text[i] (an ESC) ends: the index behind it. */
static size_t sequence_end(const char *text, size_t len, size_t i)
{
	char kind = i + 1 < len ? text[i + 1] : '\0';
	size_t at = i + 2;
	if (kind == '[') {
		while (at < len && (unsigned char)(text[at] - '@') > '~' - '@')
			at++;
		return at < len ? at + 1 : len;
	}
	if (kind == ']') {
		while (at < len && text[at] != '\a' && text[at] != '\n' &&
		       !(text[at] == '\\' && text[at - 1] == '\x1b'))
			at++;
		return at < len && text[at] != '\n' ? at + 1 : at;
	}
	if (kind == '(' || kind == ')') /* a character set: one more */
		at++;
	/* a line's end is none of the sequence's */
	return at <= len && kind != '\n' ? at : i + 1;
}

size_t np_log_strip_ansi(char *text, size_t len)
{
	size_t kept = 0;
	for (size_t i = 0; i < len;) {
		if (text[i] == '\x1b') {
			i = sequence_end(text, len, i);
			continue;
		}
		text[kept++] = text[i++];
	}
	return kept;
}
