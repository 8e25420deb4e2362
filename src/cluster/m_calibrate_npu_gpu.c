/*
 * calibrate_npu_gpu (cluster_and_advisor.md §2.26): time of the kernels by module, on an
 * NPU and on a GPU side by side.
 *
 *   NPU  ranges of mstx in the domain "Module" (modules.h), rank r
 *   GPU  database of Nsight Systems (nsys.h), device r
 *
 * Modules are the same when their paths are, "Ascend" taken out of the NPU's; what is
 * left over takes the GPU's most similar path. Within a module both sides' rows stand by
 * time, longest first, and are shown beside each other.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/export.h"
#include "cluster/internal.h"
#include "cluster/modules.h"
#include "cluster/nsys.h"
#include "cluster/parts.h"
#include "cluster/similarity.h"
#include "report/write_xlsx.h"

static const double CUTOFF = 0.8, OFFICIAL_CUTOFF = 0.6;

/* Comparisons of names: two lists of thousands, which no model has, are not compared. */
enum { MAX_COMPARISONS = 1 << 20 };

/* ── modules of one side ── */

struct item {
	np_str module, op, kernel;
	uint32_t key; /* in the keys of the work */
	double ns;
	uint64_t count;
	size_t row; /* ties stay in the order of the first run */
};

struct side {
	struct item *items; /* by key, longest first */
	size_t n;
	double total;
};

struct module {
	size_t start, n; /* items */
	double ns;
};

struct work {
	struct np_cluster *cluster;
	const struct np_nsys *gpu_data;
	struct np_intern keys;
	struct side npu, gpu;
	struct module *npu_of, *gpu_of; /* by key */
	size_t n_keys, comparisons;
	uint8_t *taken; /* by key: a GPU's module that an NPU's one has */
};

static int by_key(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

/* "parent/module"; of the NPU without "Ascend". */
static uint32_t key_of(struct np_intern *keys, np_str parent, np_str module, const char *without)
{
	struct np_buf path = {0}, clean = {0};
	np_buf_add_str(&path, parent);
	np_buf_add_cstr(&path, parent.len > 0 ? "/" : "");
	np_buf_add_str(&path, module);
	np_str rest = np_buf_str(&path), word = np_str_of(without);
	while (rest.len > 0) {
		bool skip = word.len > 0 && np_str_starts(rest, word);
		if (!skip)
			np_buf_add_char(&clean, rest.ptr[0]);
		rest = np_str_from(rest, skip ? word.len : 1);
	}
	uint32_t key =
		path.failed || clean.failed ? NP_ID_NONE : np_intern_add(keys, np_buf_str(&clean));
	np_buf_release(&path);
	np_buf_release(&clean);
	return key;
}

static bool take_npu(struct work *self, size_t rank)
{
	struct np_cluster *cluster = self->cluster;
	const struct np_digest_modules *rows =
		NP_DIGEST_ROWS(&cluster->ranks.v[rank], np_digest_modules);
	self->npu.items = np_calloc(rows->n + 1, sizeof *self->npu.items);
	for (size_t i = 0; self->npu.items && i < rows->n; i++) {
		struct item *item = &self->npu.items[self->npu.n];
		item->module = np_cluster_text(cluster, rows->module[i]);
		item->op = np_cluster_text(cluster, rows->op[i]);
		item->kernel = np_cluster_text(cluster, rows->kernels[i]);
		item->ns = (double)rows->total_ns[i];
		item->count = (uint64_t)rows->count[i];
		item->row = i;
		item->key = key_of(&self->keys, np_cluster_text(cluster, rows->parent[i]),
		                   item->module, "Ascend");
		if (item->key == NP_ID_NONE)
			return false;
		self->npu.total += item->ns;
		self->npu.n++;
	}
	return self->npu.items != NULL;
}

static bool take_gpu(struct work *self, size_t rank)
{
	const struct np_nsys *data = self->gpu_data;
	int64_t device = self->cluster->ranks.v[rank].rank;
	self->gpu.items = np_calloc(data->rows.n + 1, sizeof *self->gpu.items);
	for (size_t i = 0; self->gpu.items && i < data->rows.n; i++) {
		const struct np_nsys_row *row = &data->rows.v[i];
		struct item *item = &self->gpu.items[self->gpu.n];
		if ((int64_t)row->device != device)
			continue;
		item->module = np_intern_get(&data->strings, row->module);
		item->op = np_intern_get(&data->strings, row->op);
		item->kernel = np_intern_get(&data->strings, row->kernel);
		item->ns = (double)row->total_ns;
		item->count = row->count;
		item->row = i;
		item->key = key_of(&self->keys, np_intern_get(&data->strings, row->parent),
		                   item->module, "");
		if (item->key == NP_ID_NONE)
			return false;
		self->gpu.total += item->ns;
		self->gpu.n++;
	}
	return self->gpu.items != NULL;
}

static struct module *index_side(struct side *side, size_t n_keys)
{
	struct module *modules = np_calloc(n_keys + 1, sizeof *modules);
	if (!modules)
		return NULL;
	qsort(side->items, side->n, sizeof *side->items, by_key);
	for (size_t i = 0; i < side->n; i++) {
		struct module *module = &modules[side->items[i].key];
		if (module->n++ == 0)
			module->start = i;
		module->ns += side->items[i].ns;
	}
	return modules;
}

/* ── pairs of modules ── */

static double cutoff_of(const struct np_cluster_options *options)
{
	if (options->compat)
		return OFFICIAL_CUTOFF; /* the option does not arrive there */
	return options->fuzzy_threshold > 0 ? options->fuzzy_threshold : CUTOFF;
}

/* The GPU's key for one of the NPU, or NP_ID_NONE. */
static uint32_t partner_of(struct work *self, uint32_t key)
{
	double best = cutoff_of(self->cluster->options);
	uint32_t found = NP_ID_NONE;
	if (self->gpu_of[key].n > 0)
		return key;
	for (uint32_t other = 0; other < self->n_keys; other++) {
		if (self->gpu_of[other].n == 0 || self->comparisons >= MAX_COMPARISONS)
			continue;
		self->comparisons++;
		double alike = np_similarity(np_intern_get(&self->keys, key),
		                             np_intern_get(&self->keys, other), best);
		if (alike > best || (alike == best && found == NP_ID_NONE)) {
			best = alike;
			found = other;
		}
	}
	return found;
}

/* ── rows ── */

static const struct np_column columns[] = {
	{"module", "", NP_COL_TEXT, "modules from the outermost, as the NPU has them"},
	{"npuOpName", "", NP_COL_TEXT, "operator on the NPU"},
	{"npuKernelList", "", NP_COL_TEXT, "what it launched"},
	{"npuTotalKernelDuration(ns)", "", NP_COL_REAL, "time of its kernels, all instances"},
	{"npuPercent(%)", "", NP_COL_REAL, "that of all modules of the rank"},
	{"npuOpCount", "", NP_COL_INT, "instances"},
	{"gpuModule", "", NP_COL_TEXT, "the GPU's module that is taken for the same"},
	{"gpuOpName", "", NP_COL_TEXT, "operator on the GPU"},
	{"gpuKernel", "", NP_COL_TEXT, "kernel on the GPU"},
	{"gpuTotalKernelDuration(ns)", "", NP_COL_REAL, "time of its runs"},
	{"gpuPercent(%)", "", NP_COL_REAL, "that of all modules of the device"},
	{"gpuKernelCount", "", NP_COL_INT, "its runs"},
	{"moduleTimeRatio(NPU/GPU)", "", NP_COL_REAL, "time of the module, NPU by GPU"},
	{"moduleTimeDiff(ns)", "", NP_COL_REAL, "time of the module, NPU - GPU"},
};

static void put_item(const struct side *side, const struct item *item, struct np_table *table)
{
	if (!item) {
		for (int i = 0; i < 5; i++)
			np_cell_na(table);
		return;
	}
	np_cell_text(table, item->op);
	np_cell_text(table, item->kernel);
	np_cell_real(table, item->ns);
	np_cell_real(table, side->total > 0 ? 100 * item->ns / side->total : 0);
	np_cell_int(table, (int64_t)item->count);
}

static const struct item *item_at(const struct side *side, const struct module *module, size_t i)
{
	return module && i < module->n ? &side->items[module->start + i] : NULL;
}

static void key_cell(const struct work *self, uint32_t key, struct np_table *table)
{
	if (key == NP_ID_NONE)
		np_cell_na(table);
	else
		np_cell_text(table, np_intern_get(&self->keys, key));
}

/* Either side may be missing. */
static void put_module(const struct work *self, uint32_t npu_key, uint32_t gpu_key,
                       struct np_table *table)
{
	const struct module *npu = npu_key != NP_ID_NONE ? &self->npu_of[npu_key] : NULL;
	const struct module *gpu = gpu_key != NP_ID_NONE ? &self->gpu_of[gpu_key] : NULL;
	size_t n = npu ? npu->n : 0;
	n = gpu && gpu->n > n ? gpu->n : n;
	for (size_t i = 0; i < n; i++) {
		key_cell(self, npu_key, table);
		put_item(&self->npu, item_at(&self->npu, npu, i), table);
		key_cell(self, gpu_key, table);
		put_item(&self->gpu, item_at(&self->gpu, gpu, i), table);
		if (npu && gpu && gpu->ns > 0)
			np_cell_real(table, npu->ns / gpu->ns);
		else
			np_cell_na(table);
		if (npu && gpu)
			np_cell_real(table, npu->ns - gpu->ns);
		else
			np_cell_na(table);
	}
}

static bool compare_rank(struct work *self, size_t rank)
{
	struct np_cluster *cluster = self->cluster;
	if (!np_intern_init(&self->keys) || !take_npu(self, rank) || !take_gpu(self, rank))
		return false;
	self->n_keys = self->keys.strings.n;
	self->npu_of = index_side(&self->npu, self->n_keys);
	self->gpu_of = index_side(&self->gpu, self->n_keys);
	self->taken = np_calloc(self->n_keys + 1, 1);
	if (!self->npu_of || !self->gpu_of || !self->taken)
		return false;
	if (self->npu.n == 0 || self->gpu.n == 0)
		return true;
	char id[64];
	(void)snprintf(id, sizeof id, "CompareProfileReportRank%" PRId64,
	               cluster->ranks.v[rank].rank);
	struct np_table *table =
		NP_REPORT_TABLE(cluster->report, id, "Modules on NPU and GPU", columns);
	for (uint32_t key = 0; key < self->n_keys; key++) {
		if (self->npu_of[key].n == 0)
			continue;
		uint32_t partner = partner_of(self, key);
		if (partner != NP_ID_NONE)
			self->taken[partner] = 1;
		put_module(self, key, partner, table);
	}
	for (uint32_t key = 0; key < self->n_keys; key++)
		if (self->gpu_of[key].n > 0 && !self->taken[key])
			put_module(self, NP_ID_NONE, key, table);
	return true;
}

static void release(struct work *self)
{
	np_intern_release(&self->keys);
	np_free(self->npu.items);
	np_free(self->gpu.items);
	np_free(self->npu_of);
	np_free(self->gpu_of);
	np_free(self->taken);
}

/* ── all ranks ── */

static bool has_device(const struct np_nsys *data, int64_t device)
{
	for (size_t i = 0; i < data->rows.n; i++)
		if ((int64_t)data->rows.v[i].device == device)
			return true;
	return false;
}

/* The two sides of every rank: who lacks what. false: out of memory. */
static bool tell_lacking(struct np_cluster *cluster, const struct np_recipe *self,
                         const struct np_nsys *data, size_t *n_both)
{
	bool *npu = np_calloc(cluster->ranks.n + 1, sizeof *npu);
	bool *gpu = np_calloc(cluster->ranks.n + 1, sizeof *gpu);
	bool ok = npu && gpu;
	for (size_t r = 0; ok && r < cluster->ranks.n; r++) {
		npu[r] = NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_modules)->n > 0;
		gpu[r] = has_device(data, cluster->ranks.v[r].rank);
		*n_both += npu[r] && gpu[r];
	}
	if (ok && *n_both > 0) {
		np_cluster_lacking(cluster, self, npu, NP_MODULES_LACKING);
		np_cluster_lacking(cluster, self, gpu,
		                   "device of that number with modules in the GPU's database");
	}
	np_free(npu);
	np_free(gpu);
	return ok;
}

static enum np_status compare_all(struct np_cluster *cluster, const struct np_recipe *self,
                                  const struct np_nsys *data, struct np_err *err)
{
	size_t n = 0;
	if (!tell_lacking(cluster, self, data, &n))
		return np_err_nomem(err);
	if (n == 0) {
		np_cluster_nothing(cluster, self,
		                   "no rank has modules on both sides: on the NPU ranges of mstx "
		                   "in the domain \"Module\", on the GPU of that number ranges of "
		                   "NVTX named after modules");
		return NP_OK;
	}
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		struct work work = {.cluster = cluster, .gpu_data = data};
		bool ok = compare_rank(&work, r);
		release(&work);
		if (!ok)
			return np_err_nomem(err);
	}
	np_report_note(cluster->report,
	               "GPU: %llu kernels, %llu outside of modules, %llu rows left out",
	               (unsigned long long)data->kernels, (unsigned long long)data->outside,
	               (unsigned long long)data->dropped);
	return NP_OK;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	const char *path = cluster->options->baseline;
	struct np_nsys data;
	struct np_err why = {0};
	if (!path) {
		np_cluster_nothing(cluster, self,
		                   "--baseline_profiling_path names the GPU's database of Nsight "
		                   "Systems (nsys export --type sqlite)");
		return NP_OK;
	}
	enum np_status status = np_nsys_read(path, &data, &why);
	if (status == NP_OK) {
		status = compare_all(cluster, self, &data, err);
	} else if (status == NP_E_NOMEM) {
		status = np_err_nomem(err);
	} else {
		np_cluster_nothing(cluster, self, "%s", why.msg);
		status = NP_OK;
	}
	np_nsys_release(&data);
	return status;
}

/* ── files ── */

static enum np_status write_rank(struct np_cluster *cluster, const struct np_recipe *self,
                                 struct np_export *out, int64_t rank, struct np_err *err)
{
	char id[64], file[64];
	(void)snprintf(id, sizeof id, "CompareProfileReportRank%" PRId64, rank);
	(void)snprintf(file, sizeof file, "compare_profile_report_%" PRId64 ".xlsx", rank);
	const struct np_table *table = np_export_table(cluster, id);
	if (!table)
		return NP_OK;
	if (out->type == NP_EXPORT_DB)
		return np_db_file_table(out->db, table, NULL, err);
	const char *path = np_export_path(out, self->dir, file, err);
	if (!path)
		return err ? err->code : NP_E_IO;
	struct np_xlsx_sheet sheet = {
		.name = "Sheet1", .table = table, .n_merged = 1, .header_fill = 0xAFEEEE};
	return np_xlsx_write(path, &sheet, 1, err);
}

static enum np_status export(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_export *out, struct np_err *err) {
	for (size_t r = 0; r < cluster->ranks.n; r++)
		NP_TRY(write_rank(cluster, self, out, cluster->ranks.v[r].rank, err));
	return NP_OK;
}

static const struct np_part *const parts[] = {&np_part_modules, NULL};

/* the tables have the ranks in their names: export() writes them */
static const struct np_recipe_file files[] = {{.table = NULL}};

const struct np_recipe np_recipe_calibrate_npu_gpu = {
	.name = "calibrate_npu_gpu",
	.dir = "CalibrateNpuGpu",
	.summary = NP_N("modules on NPU and GPU beside each other (--baseline_profiling_path)"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
	.export = export,
};
