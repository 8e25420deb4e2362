/*
 * The files of a job over there, and the shell scripts that make and read them. A job is one
 * directory, WORKSPACE/npuprof_runs/ID:
 *
 *   go.sh        what runs; finish.sh: exports what a killed run left behind
 *   go.started/  made by who launches it first: a launch may be repeated
 *   go.pid       "PID START" of the session; START, its field 22 in /proc, names one process
 *   npuprof.pid  of `npuprof run`
 *   go.busy      the lock that is held by someone else; nothing ran
 *   log          of the command and of npuprof run
 *   status       exit status of npuprof run, once it has ended
 *   report.json  of npuprof run
 *   run_TIME/    the run directory
 *
 * A lock of a device is the link N in /tmp/npuprof-devices ($NPUPROF_LOCKS there) to "PID START
 * JOB": a link appears with its content at once. One whose process is gone is taken over.
 */
#ifndef NP_COLLECT_COLLECT_SCRIPT_H
#define NP_COLLECT_COLLECT_SCRIPT_H

#define COLLECT_LOCKS "\"${NPUPROF_LOCKS:-/tmp/npuprof-devices}\""

/* Prints the devices that are locked by a process that lives: "N PID JOB" per line. */
#define COLLECT_LOCKED_SCRIPT                                                            \
	"for l in " COLLECT_LOCKS "/*; do\n"                                             \
	"[ -L \"$l\" ] || continue\n"                                                    \
	"set -- $(readlink \"$l\")\n"                                                    \
	"[ \"$(cut -d' ' -f22 \"/proc/$1/stat\" 2>/dev/null)\" = \"$2\" ] || continue\n" \
	"echo \"${l##*/} $1 $3\"\n"                                                      \
	"done\n"

/* Part of go.sh, with $job and $devices (words): takes the locks or ends. */
#define COLLECT_LOCK_SCRIPT                                                             \
	"held=\n"                                                                       \
	"locks=" COLLECT_LOCKS "\n"                                                     \
	"unlock() { for d in $held; do rm -f \"$locks/$d\"; done; }\n"                  \
	"me=\"$$ $(cut -d' ' -f22 /proc/$$/stat) $job\"\n"                              \
	"[ -z \"$devices\" ] || mkdir -p -m 1777 \"$locks\" 2>/dev/null\n"              \
	"for d in $devices; do\n"                                                       \
	"l=$locks/$d\n"                                                                 \
	"if ! ln -s \"$me\" \"$l\" 2>/dev/null; then\n"                                 \
	"old=$(readlink \"$l\"); set -- $old\n"                                         \
	"if [ \"$(cut -d' ' -f22 \"/proc/$1/stat\" 2>/dev/null)\" != \"$2\" ]; then\n"  \
	"mv \"$l\" \"$l.$$\" 2>/dev/null\n"                                             \
	"[ \"$(readlink \"$l.$$\")\" = \"$old\" ] || mv \"$l.$$\" \"$l\" 2>/dev/null\n" \
	"rm -f \"$l.$$\"\n"                                                             \
	"fi\n"                                                                          \
	"if ! ln -s \"$me\" \"$l\" 2>/dev/null; then\n"                                 \
	"old=$(readlink \"$l\") || old=\"cannot be written: $l\"\n"                     \
	"unlock; echo \"$d $old\" > \"$job/go.busy\"; rmdir \"$job/go.started\"\n"      \
	"exit 0\n"                                                                      \
	"fi\n"                                                                          \
	"fi\n"                                                                          \
	"held=\"$held $d\"\n"                                                           \
	"done\n"

/* $1 job, $2 go or finish; the script from stdin. Prints started or known. */
#define COLLECT_LAUNCH_SCRIPT                                                      \
	"mkdir -p -- \"$1\" || exit 73\n"                                          \
	"cd -- \"$1\" || exit 73\n"                                                \
	"if [ -e \"$2.started\" ]; then cat > /dev/null; echo known; exit 0; fi\n" \
	"cat > \"$2.sh.$$\" && mv -f \"$2.sh.$$\" \"$2.sh\" || exit 73\n"          \
	"rm -f go.busy\n"                                                          \
	"mkdir \"$2.started\" 2>/dev/null || { echo known; exit 0; }\n"            \
	"b=$(command -v bash || command -v sh)\n"                                  \
	"if command -v setsid >/dev/null 2>&1; then\n"                             \
	"setsid \"$b\" \"./$2.sh\" < /dev/null > /dev/null 2>&1 &\n"               \
	"else nohup \"$b\" \"./$2.sh\" < /dev/null > /dev/null 2>&1 & fi\n"        \
	"echo started\n"

/*
 * $1 job, $2 go or finish, $3 bytes of the log that are known. One line, "STATE STATUS BYTES
 * LINES", and what is new in the log. STATE: ended, runs, busy, gone (no process, no status),
 * starts (no process yet).
 */
#define COLLECT_LOOK_SCRIPT                                                            \
	"cd -- \"$1\" 2>/dev/null || { echo 'starts - 0 0'; exit 0; }\n"               \
	"s=-; b=0; n=0\n"                                                              \
	"if [ -f \"$2.status\" ]; then t=ended; s=$(cat \"$2.status\")\n"              \
	"elif [ -f go.busy ]; then t=busy\n"                                           \
	"elif [ -f \"$2.pid\" ]; then read -r p k < \"$2.pid\"; t=gone\n"              \
	"[ \"$(cut -d' ' -f22 \"/proc/$p/stat\" 2>/dev/null)\" = \"$k\" ] && t=runs\n" \
	"[ -f \"$2.status\" ] && { t=ended; s=$(cat \"$2.status\"); }\n"               \
	"else t=starts; fi\n"                                                          \
	"if [ -f log ]; then b=$(wc -c < log); n=$(wc -l < log); fi\n"                 \
	"echo \"$t $s $b $n\"\n"                                                       \
	"if [ \"$t\" = busy ]; then cat go.busy\n"                                     \
	"elif [ \"$b\" -gt \"$3\" ]; then tail -c +$(($3 + 1)) log | tail -c 16384; fi\n"

/* $1 job. Ends npuprof run, which ends the command; without it, nothing. */
#define COLLECT_STOP_SCRIPT                                                            \
	"cd -- \"$1\" 2>/dev/null || exit 0\n"                                         \
	"read -r p k < go.pid 2>/dev/null || exit 0\n"                                 \
	"[ \"$(cut -d' ' -f22 \"/proc/$p/stat\" 2>/dev/null)\" = \"$k\" ] || exit 0\n" \
	"read -r q k < npuprof.pid 2>/dev/null || { kill -TERM \"$p\"; exit 0; }\n"    \
	"[ \"$(cut -d' ' -f22 \"/proc/$q/stat\" 2>/dev/null)\" = \"$k\" ] || exit 0\n" \
	"kill -TERM \"$q\"\n"

/* $1 job. The run directory and its run.json. */
#define COLLECT_RESULT_SCRIPT                                             \
	"cd -- \"$1\" || exit 66\n"                                       \
	"for d in run_*/; do [ -f \"${d}run.json\" ] || continue\n"       \
	"printf '%s\\n' \"${d%/}\"; cat \"${d}run.json\"; exit 0; done\n" \
	"exit 66\n"

#endif
