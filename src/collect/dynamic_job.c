#include "collect/dynamic_job.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Seconds since the epoch at which this host booted. */
static bool boot_time(long long *out)
{
	char line[512];
	bool found = false;
	FILE *stat = fopen("/proc/stat", "re");
	while (stat && !found && fgets(line, sizeof line, stat))
		found = sscanf(line, "btime %lld", out) == 1;
	if (stat)
		(void)fclose(stat);
	return found;
}

/* proc(5): field 22 of stat, in ticks since the boot; the name in field 2 may hold anything. */
static bool process_start(int64_t pid, np_ns *out)
{
	char path[64], text[2048];
	long long boot, ticks;
	long hz = sysconf(_SC_CLK_TCK);
	(void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	size_t got = fread(text, 1, sizeof text - 1, file);
	(void)fclose(file);
	text[got] = '\0';
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, " %lld", &ticks) != 1 || hz <= 0 || !boot_time(&boot))
		return false;
	*out = ((np_ns)boot * 1000000000) + (np_ns)ticks * (1000000000 / hz);
	return true;
}

enum np_status np_dyn_job_start(const char *text, np_ns *out, struct np_err *err)
{
	enum { MAX_PID = 4194304 }; /* of a 64-bit kernel */
	int64_t pid;
	double seconds;
	if (np_str_to_i64(np_str_of(text), &pid) && pid > 0 && pid <= MAX_PID) {
		if (process_start(pid, out))
			return NP_OK;
		return np_err_set(err, NP_E_NOTFOUND, NULL, "no process %lld on this host",
		                  (long long)pid);
	}
	if (!np_str_to_double(np_str_of(text), &seconds) || seconds < 0 || seconds > 9e9)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "--job-start wants a pid or seconds since the epoch, got '%s'",
		                  text);
	*out = (np_ns)(seconds * 1e9);
	return NP_OK;
}
