#include "unit.h"

#include "analysis/normalise.h"
#include "base/mem.h"

static void expect(const char *name, const char *type, const char *expected, unsigned rules)
{
	struct np_buf out = {0};
	unsigned hit = np_normalise(np_str_of(name), np_str_of(type), &out);
	assert_str(np_buf_str(&out), expected);
	assert_int_equal(hit, rules);
	np_buf_release(&out);
}

#define RULE(id) (1u << NP_NORMALISE_##id)

static void counters_at_the_end_are_removed(void **state)
{
	(void)state;
	expect("trans_TransData_12", "", "trans_TransData", RULE(COUNTER));
	expect("hcom_allReduce__865_0_1", "", "hcom_allReduce", RULE(COUNTER));
	expect("Default/net/Conv2D-op123", "", "Default/net/Conv2D", RULE(COUNTER));
	expect("Conv2D7", "Conv2D", "Conv2D", RULE(TYPE_COUNTER));
}

static void digits_that_belong_to_a_name_stay(void **state)
{
	(void)state;
	expect("MatMulV3", "MatMulV3", "MatMulV3", 0);
	expect("aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3",
	       "aclnnMatmul_MatMulV3Common_MatMulV3", 0);
	expect("Conv2D7", "", "Conv2D7", 0);
	expect("layers.3.norm", "", "layers.3.norm", 0);
	expect("deadbeefdeadbeeffeed", "", "deadbeefdeadbeeffeed", 0);
}

static void addresses_hashes_and_uuids_are_removed(void **state)
{
	(void)state;
	expect("triton_poi_0x7f3a22d0", "", "triton_poi", RULE(ADDRESS));
	expect("hcom_send__1_0_1@4629841820123456", "", "hcom_send", RULE(HASH) | RULE(COUNTER));
	expect("graph_6f1e0c2a-1111-2222-3333-0123456789ab_op", "", "graph_op", RULE(UUID));
	expect("fused_0123456789abcdef0_add", "", "fused_add", RULE(HASH));
	expect("mask_0xff", "", "mask_0xff", 0); /* too short for an address */
}

static void a_name_of_nothing_else_stays(void **state)
{
	(void)state;
	expect("", "", "", 0);
	expect("12345", "", "12345", 0);
	expect("123456789012345", "", "123456789012345", 0);
	expect("_1", "", "_1", 0);
}

static void memory_that_runs_out_is_told(void **state)
{
	(void)state;
	struct np_buf out = {0};
	np_mem_fail_after(1);
	(void)np_normalise(NP_STR("trans_TransData_12"), NP_STR(""), &out);
	np_mem_fail_after(0);
	assert_true(out.failed);
	np_buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_at_the_end_are_removed),
		cmocka_unit_test(digits_that_belong_to_a_name_stay),
		cmocka_unit_test(addresses_hashes_and_uuids_are_removed),
		cmocka_unit_test(a_name_of_nothing_else_stays),
		cmocka_unit_test(memory_that_runs_out_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
