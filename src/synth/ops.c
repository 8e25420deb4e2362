#include "synth/ops.h"

#define H   "\"1,4096,2048\""
#define BF  "DT_BF16"
#define BF2 "DT_BF16;DT_BF16"

/* clang-format off */
const struct np_synth_op np_synth_ops[NP_OPS] = {
	{"aclnnRmsNorm_RmsNorm_RmsNorm", "RmsNorm", NP_CORE_VECTOR, 22000, 40, 0, false, 0, 412, 388, 231, 16384,
	 "\"1,4096,2048;2048\"", BF2, "ND;ND", "\"1,4096,2048;1,4096,1\"", "DT_BF16;FLOAT", "ND;ND",
	 "npu::npu_rms_norm", "aclnnRmsNorm"},
	{"aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", NP_CORE_CUBE, 150000, 20, 0, true, 713, 0, 604, 0, 24576,
	 "\"4096,2048;3072,2048\"", BF2, "ND;ND", "\"4096,3072\"", BF, "ND", "aten::linear", "aclnnMatmul"},
	{"aclnnApplyRotaryPosEmb_RotaryMul_ApplyRotaryPosEmb", "ApplyRotaryPosEmb", NP_CORE_VECTOR, 18000, 40, 0, false,
	 0, 305, 420, 388, 8192, "\"1,4096,16,128;1,4096,1,128\"", BF2, "ND;ND", "\"1,4096,16,128\"", BF, "ND",
	 "npu::npu_rotary_mul", "aclnnRotaryPositionEmbedding"},
	{"aclnnFlashAttentionScore_FlashAttentionScore_FlashAttentionScore", "FlashAttentionScore", NP_CORE_MIX, 240000,
	 20, 40, false, 455, 611, 402, 198, 16384, "\"4096,1,2048;4096,1,512;4096,1,512\"", "DT_BF16;DT_BF16;DT_BF16",
	 "ND;ND;ND", "\"1,16,4096,8;4096,1,2048\"", "FLOAT;DT_BF16", "ND;ND",
	 "npu::npu_fusion_attention", "aclnnFlashAttentionScore"},
	{"aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", NP_CORE_CUBE, 70000, 20, 0, true, 688, 0, 571, 0, 16384,
	 "\"4096,2048;2048,2048\"", BF2, "ND;ND", "\"4096,2048\"", BF, "ND", "aten::linear", "aclnnMatmul"},
	{"aclnnAdd_AddAiCore_Add", "Add", NP_CORE_VECTOR, 12000, 40, 0, false, 0, 118, 623, 402, 16384,
	 "\"1,4096,2048;1,4096,2048\"", BF2, "ND;ND", H, BF, "ND", "aten::add", "aclnnAdd"},
	{"aclnnRmsNorm_RmsNorm_RmsNorm", "RmsNorm", NP_CORE_VECTOR, 22000, 40, 0, false, 0, 409, 391, 226, 16384,
	 "\"1,4096,2048;2048\"", BF2, "ND;ND", "\"1,4096,2048;1,4096,1\"", "DT_BF16;FLOAT", "ND;ND",
	 "npu::npu_rms_norm", "aclnnRmsNorm"},
	{"aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", NP_CORE_CUBE, 210000, 20, 0, true, 802, 0, 498, 0, 49152,
	 "\"4096,2048;6144,2048\"", BF2, "ND;ND", "\"4096,6144\"", BF, "ND", "aten::linear", "aclnnMatmul"},
	{"aclnnSwiGlu_SwiGlu_SwiGlu", "SwiGlu", NP_CORE_VECTOR, 30000, 40, 0, false, 0, 488, 530, 262, 24576,
	 "\"1,4096,6144\"", BF, "ND", "\"1,4096,3072\"", BF, "ND", "npu::npu_swiglu", "aclnnSwiGlu"},
	{"aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", NP_CORE_CUBE, 120000, 20, 0, true, 751, 0, 533, 0, 16384,
	 "\"4096,3072;2048,3072\"", BF2, "ND;ND", "\"4096,2048\"", BF, "ND", "aten::linear", "aclnnMatmul"},
	{"aclnnCast_CastAiCore_Cast", "Cast", NP_CORE_VECTOR, 14000, 40, 0, false, 0, 92, 588, 515, 32768,
	 H, BF, "ND", H, "FLOAT", "ND", "aten::to", "aclnnCast"},
	{"aclnnAdd_AddAiCore_Add", "Add", NP_CORE_VECTOR, 12000, 40, 0, false, 0, 121, 618, 405, 16384,
	 "\"1,4096,2048;1,4096,2048\"", BF2, "ND;ND", H, BF, "ND", "aten::add", "aclnnAdd"},
	{"aclnnEmbedding_GatherV2AiCore_GatherV2", "GatherV2", NP_CORE_VECTOR, 48000, 40, 0, false, 0, 6, 781, 120, 16384,
	 "\"151936,2048;1,4096;1\"", "DT_BF16;INT64;INT64", "ND;ND;ND", H, BF, "ND", "aten::embedding", "aclnnEmbedding"},
	{"aclnnTril_TrilAiCpu_Tril", "Tril", NP_CORE_AICPU, 12000, 1, 0, false, 0, 0, 0, 0, 64,
	 "\"64,64\"", "BOOL", "ND", "\"64,64\"", "BOOL", "ND", "aten::tril", "aclnnTril"},
	{"aclnnIndexPutImpl_IndexPutV2AiCpu_IndexPutV2", "IndexPutV2", NP_CORE_AICPU, 300000, 1, 0, false, 0, 0, 0, 0, 512,
	 "\"4096,64;4096;4096,64\"", "FLOAT;INT64;FLOAT", "ND;ND;ND", "\"4096,64\"", "FLOAT", "ND",
	 "aten::index_put_", "aclnnIndexPutImpl"},
	{"aclnnApplyAdamWV2_ApplyAdamWV2_ApplyAdamWV2", "ApplyAdamWV2", NP_CORE_VECTOR, 180000, 40, 0, false,
	 0, 340, 712, 655, 0, "\"12582912;12582912;12582912;12582912\"", "FLOAT;FLOAT;FLOAT;FLOAT", "ND;ND;ND;ND",
	 "\"12582912;12582912;12582912\"", "FLOAT;FLOAT;FLOAT", "ND;ND;ND",
	 "npu::npu_apply_adam_w", "aclnnApplyAdamWV2"},
	{"aclnnNorm_ReduceSumOpAiCore_ReduceSum", "ReduceSum", NP_CORE_VECTOR, 36000, 40, 0, false, 0, 402, 702, 12, 4,
	 "\"12582912\"", "FLOAT", "ND", "\"1\"", "FLOAT", "ND", "aten::linalg_vector_norm", "aclnnNorm"},
};
/* clang-format on */

const char *np_synth_core_name(enum np_synth_core core)
{
	static const char *const names[] = {"AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "AI_CPU"};
	return names[core];
}

const char *np_synth_task_type(enum np_synth_core core)
{
	static const char *const names[] = {"KERNEL_AICORE", "KERNEL_AIVEC", "KERNEL_MIX_AIC",
	                                    "AI_CPU"};
	return names[core];
}
