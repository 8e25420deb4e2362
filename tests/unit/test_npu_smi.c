/* npu-smi's output in all layouts, and what is picked. */
#include <math.h>

#include "base/fs.h"
#include "collect/npu_pick.h"
#include "unit.h"

static struct np_npu_set set;

static void add_file(struct np_buf *text, const char *name, const char *suffix)
{
	const char *source = getenv("NPUPROF_SOURCE");
	struct np_arena arena;
	char path[4096];
	np_str part = {0};
	(void)snprintf(path, sizeof path, "%s/tests/fakes/npu_smi/%s%s.txt", source ? source : ".",
	               name, suffix);
	np_arena_init(&arena);
	if (np_file_slurp(&arena, path, 1 << 20, &part, NULL) == NP_OK)
		np_buf_add_str(text, part);
	else if (*suffix == '\0')
		fail_msg("%s cannot be read", path);
	np_buf_add_char(text, '\n');
	np_arena_release(&arena);
}

/* The recorded output with its map and topology where there are some. */
static enum np_status load(const char *name, bool all, struct np_err *err)
{
	static struct np_buf text;
	np_buf_release(&text);
	text = (struct np_buf){0};
	add_file(&text, name, "");
	if (all) {
		add_file(&text, name, ".map");
		add_file(&text, name, ".topo");
	}
	np_npu_set_release(&set);
	np_npu_set_init(&set);
	enum np_status status = np_npu_parse(np_buf_str(&text), "npu-smi", &set, err);
	np_buf_release(&text);
	return status;
}

static void loaded(const char *name, size_t n_devices, size_t n_processes)
{
	struct np_err err = {0};
	if (load(name, true, &err) != NP_OK)
		fail_msg("%s: %s: %s", name, err.where, err.msg);
	assert_int_equal(set.devices.n, n_devices);
	assert_int_equal(set.processes.n, n_processes);
}

/* "4,6" of the logical ids of what is picked, or "-" */
static const char *picked(size_t n, bool span)
{
	static char text[256];
	size_t groups[NP_NPU_MAX], chosen[NP_NPU_MAX];
	const char *busy[NP_NPU_MAX];
	size_t len = 0;
	(void)np_npu_groups(&set, groups);
	for (size_t i = 0; i < set.devices.n; i++)
		busy[i] = np_npu_busy(&set, i, 0);
	struct np_npu_choice choice = np_npu_pick(&set, busy, groups, n, span, chosen);
	(void)snprintf(text, sizeof text, "-");
	for (size_t i = 0; choice.found && i < n; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%lld", i ? "," : "",
		                        (long long)np_npu_logical(&set, chosen[i]));
	return text;
}

static size_t group_of(size_t device, enum np_npu_grouping want)
{
	size_t groups[NP_NPU_MAX];
	assert_int_equal(np_npu_groups(&set, groups), want);
	return groups[device];
}

static void the_910a_has_two_rings(void **state)
{
	(void)state;
	loaded("910a", 8, 1);
	const struct np_npu_device *five = &set.devices.v[5];
	assert_str(set.version, "22.0.4");
	assert_str(five->name, "910A");
	assert_int_equal(five->npu, 5);
	assert_int_equal(five->chip, 0);
	assert_int_equal(five->logic, 5);
	assert_int_equal(five->phy, NP_NPU_NONE);
	assert_true(five->aicore == 87 && five->power_w == 66.6 && five->temp_c == 45);
	assert_int_equal(five->hbm_used_mb, 28651);
	assert_int_equal(five->hbm_total_mb, 32768);
	assert_int_equal(five->mem_used_mb, 1835);
	assert_int_equal(five->huge_used, 15);
	assert_int_equal(five->n_processes, 1);
	assert_int_equal(set.processes.v[0].pid, 31211);
	assert_int_equal(group_of(3, NP_GROUPS_TOPO), 0);
	assert_int_equal(group_of(4, NP_GROUPS_TOPO), 1);
	assert_string_equal(picked(1, false), "4"); /* the ring that is in use already */
	assert_string_equal(picked(3, false), "4,6,7");
	assert_string_equal(picked(4, false), "0,1,2,3");
	assert_string_equal(picked(5, false), "-");
	assert_string_equal(picked(7, true), "0,1,2,3,4,6,7");
	assert_string_equal(picked(8, true), "-");
	/* the same without a topology: known of the chip */
	assert_int_equal(load("910a", false, NULL), NP_OK);
	assert_int_equal(group_of(7, NP_GROUPS_MODEL), 1);
	assert_string_equal(picked(4, false), "0,1,2,3");
}

static void the_910b_leaves_out_the_sick_and_the_busy(void **state)
{
	(void)state;
	loaded("910b", 8, 3);
	assert_str(set.devices.v[1].health, "Warning");
	assert_string_equal(np_npu_busy(&set, 1, 0), "health: Warning");
	assert_string_equal(np_npu_busy(&set, 0, 0), "busy: process 4021 (python)");
	assert_string_equal(np_npu_busy(&set, 2, 0), "");
	assert_string_equal(np_npu_busy(&set, 2, 1000),
	                    "3393 of 65536 MB in use, by a process that is not seen from here");
	assert_string_equal(picked(2, false), "2,3");
	assert_string_equal(picked(4, false), "2,3,6,7");
	assert_string_equal(picked(5, false), "-");
	assert_int_equal(load("910b", false, NULL), NP_OK);
	assert_int_equal(group_of(7, NP_GROUPS_MODEL), 0);
}

static void in_a_container_logical_ids_are_not_those_of_npus(void **state)
{
	(void)state;
	loaded("910b_container", 4, 1);
	assert_int_equal(set.devices.v[0].npu, 4);
	assert_int_equal(set.devices.v[0].logic, 0);
	assert_str(set.processes.v[0].name, "");
	/* 5 is held by a process of somebody else */
	assert_non_null(strstr(np_npu_busy(&set, 1, 0), "not seen from here"));
	assert_string_equal(np_npu_busy(&set, 3, 0), "busy: process 1333928");
	assert_string_equal(picked(2, false), "0,2");
	/* without the map: by position */
	assert_int_equal(load("910b_container", false, NULL), NP_OK);
	assert_false(np_npu_knows_logical(&set));
	assert_string_equal(picked(2, false), "0,2");
}

static void the_a3_has_two_chips_per_npu(void **state)
{
	(void)state;
	loaded("a3", 16, 5);
	const struct np_npu_device *one = np_npu_find(&set, 6, 1);
	assert_non_null(one);
	assert_int_equal(one->phy, 13);
	assert_int_equal(one->logic, 13);
	assert_true(isnan(one->power_w));
	assert_int_equal(one->hbm_used_mb, 31877); /* "31877/ 65536" */
	assert_int_equal(np_npu_find(&set, 0, 0)->n_processes, 2);
	assert_int_equal(np_npu_find(&set, 0, 1)->n_processes, 1);
	assert_int_equal(group_of(15, NP_GROUPS_TOPO), 0);
	/* one chip: of an NPU that is in use anyway; more: whole NPUs first */
	assert_string_equal(picked(1, false), "3");
	assert_string_equal(picked(2, false), "4,5");
	assert_string_equal(picked(11, false), "3,4,5,6,7,8,9,10,11,14,15");
}

static void later_releases_have_wider_tables(void **state)
{
	(void)state;
	loaded("a3_26", 4, 2);
	assert_int_equal(set.processes.v[0].container_pid, NP_NPU_NONE);
	assert_int_equal(set.processes.v[1].container_pid, 4711);
	assert_string_equal(picked(2, false), "1,2");
}

static void the_310p_has_no_hbm_and_groups_by_card(void **state)
{
	(void)state;
	loaded("310p", 4, 1);
	const struct np_npu_device *two = &set.devices.v[2];
	assert_int_equal(two->npu, 1792);
	assert_int_equal(two->logic, 2);
	assert_int_equal(two->hbm_total_mb, NP_NPU_NONE);
	assert_int_equal(two->mem_used_mb, 21821);
	assert_true(isnan(two->power_w));
	assert_int_equal(group_of(1, NP_GROUPS_CARD), 0);
	assert_int_equal(group_of(3, NP_GROUPS_CARD), 1);
	assert_string_equal(picked(2, false), "0,1");
	assert_string_equal(picked(3, false), "-");
	assert_string_equal(picked(3, true), "0,1,3");
}

static void what_is_broken_is_an_error_with_its_line(void **state)
{
	static const struct {
		const char *name, *where, *part;
	} cases[] = {
		{"broken_memory", "npu-smi:26", "3397 ? 65536"},
		{"broken_cut", "npu-smi", "ends within a device"},
		{"broken_heading", "npu-smi:8", "second line of a device"},
		{"broken_process", "npu-smi:42", "55x1"},
		{"broken_stray_process", "npu-smi", "NPU 9 chip 0"},
		{"no_driver", "npu-smi:1", "ret is -8005; the driver does not answer"},
		{"device_used", "npu-smi:1", "another container holds the devices"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_err err = {0};
		assert_int_equal(load(cases[i].name, false, &err), NP_E_FORMAT);
		if (strcmp(err.where, cases[i].where) != 0 || !strstr(err.msg, cases[i].part))
			fail_msg("%s: %s: %s", cases[i].name, err.where, err.msg);
	}
}

static void without_a_table_of_processes_nothing_is_free(void **state)
{
	(void)state;
	assert_int_equal(load("no_processes", false, NULL), NP_OK);
	assert_string_equal(np_npu_busy(&set, 2, 0), "the table of processes does not tell of it");
	assert_string_equal(picked(1, false), "-");
}

static void every_cut_is_an_error_or_less_is_free(void **state)
{
	struct np_buf text = {0};
	(void)state;
	add_file(&text, "910b", "");
	size_t n_full = 0;
	for (size_t len = 0; len <= text.len; len++) {
		np_npu_set_release(&set);
		np_npu_set_init(&set);
		enum np_status status = np_npu_parse((np_str){text.ptr, len}, "cut", &set, NULL);
		size_t n_free = 0;
		for (size_t i = 0; status == NP_OK && i < set.devices.n; i++)
			n_free += *np_npu_busy(&set, i, 0) == '\0';
		/* never a busy or a sick one among the free ones */
		assert_true(n_free <= 4);
		for (size_t i = 0; status == NP_OK && i < set.devices.n; i++)
			if (strchr("\0\1\4\5", (int)set.devices.v[i].npu))
				assert_true(*np_npu_busy(&set, i, 0) != '\0');
		n_full += n_free == 4;
	}
	assert_true(n_full > 0 && n_full < 300);
	np_buf_release(&text);
}

static void memory_that_runs_out_is_told(void **state)
{
	struct np_buf text = {0};
	(void)state;
	add_file(&text, "a3", "");
	add_file(&text, "a3", ".topo");
	for (uint64_t n = 1; n < 24; n++) {
		np_npu_set_release(&set);
		np_npu_set_init(&set);
		np_mem_fail_after(n);
		enum np_status status = np_npu_parse(np_buf_str(&text), "x", &set, NULL);
		np_mem_fail_after(0);
		assert_true(status != NP_OK || n > 4);
	}
	np_buf_release(&text);
}

static int release(void **state)
{
	(void)state;
	np_npu_set_release(&set);
	np_npu_set_init(&set);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_910a_has_two_rings),
		cmocka_unit_test(the_910b_leaves_out_the_sick_and_the_busy),
		cmocka_unit_test(in_a_container_logical_ids_are_not_those_of_npus),
		cmocka_unit_test(the_a3_has_two_chips_per_npu),
		cmocka_unit_test(later_releases_have_wider_tables),
		cmocka_unit_test(the_310p_has_no_hbm_and_groups_by_card),
		cmocka_unit_test(what_is_broken_is_an_error_with_its_line),
		cmocka_unit_test(without_a_table_of_processes_nothing_is_free),
		cmocka_unit_test(every_cut_is_an_error_or_less_is_free),
		cmocka_unit_test(memory_that_runs_out_is_told),
	};
	np_npu_set_init(&set);
	return cmocka_run_group_tests(tests, NULL, release);
}
