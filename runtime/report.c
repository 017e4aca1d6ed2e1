/* The text of --report. Every figure comes from the runs that were made. */
#include "runtime/runtime_internal.h"
#include <math.h>
#include <string.h>

/* Fractions of cycles come from the DRAM's bandwidth. All figures show whole ones, halves rounded
 * up, and the time of what is shown. */
static double whole(double cycles) {
  return floor(cycles + 0.5);
}

static double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

/* A number with a decimal prefix, four significant digits, fixed width. */
static void put_scaled(StrBuf *b, double v, const char *unit) {
  static const char *const prefix[] = {"", "k", "M", "G", "T", "P"};
  size_t i = 0;
  while (v >= 1000 && i + 1 < NPU_COUNTOF(prefix)) {
    v /= 1000;
    i++;
  }
  strbuf_printf(b, "%8.*f %s%s", v >= 100 ? 1 : v >= 10 ? 2 : 3, v, prefix[i], unit);
}

static void put_energy(StrBuf *b, double pj) {
  if (pj >= 1e9)
    strbuf_printf(b, "%10.3f mJ", pj / 1e9);
  else if (pj >= 1e6)
    strbuf_printf(b, "%10.3f uJ", pj / 1e6);
  else
    strbuf_printf(b, "%10.3f nJ", pj / 1e3);
}

static double seconds(const NpurtModel *m, double cycles) {
  return whole(cycles) / (m->img.machine.clock_ghz * 1e9);
}

static void put_time(StrBuf *b, double s) {
  if (s >= 1)
    strbuf_printf(b, "%.3f s", s);
  else if (s >= 1e-3)
    strbuf_printf(b, "%.3f ms", s * 1e3);
  else
    strbuf_printf(b, "%.3f us", s * 1e6);
}

static void report_totals(const NpurtModel *m, StrBuf *b) {
  const NpurtProfile *p = &m->profile;
  const MachineDesc *mc = &m->img.machine;
  strbuf_printf(b, "machine       %s, %g GHz, array %lldx%lld, DRAM %g GB/s\n", mc->name,
                mc->clock_ghz, (long long)mc->mxu_rows, (long long)mc->mxu_cols, mc->dram_gbs);
  strbuf_printf(b, "runs          %llu\ninstructions  %llu\n", (unsigned long long)p->runs,
                (unsigned long long)p->instructions);
  if (p->cycles > 0) {
    strbuf_printf(b, "cycles        %.0f (", whole(p->cycles));
    put_time(b, seconds(m, p->cycles));
    strbuf_puts(b, ")\n");
    if (p->runs > 1) {
      double each = p->cycles / (double)p->runs;
      strbuf_printf(b, "  per run     %.0f (", whole(each));
      put_time(b, seconds(m, each));
      strbuf_puts(b, ")\n");
    }
  } else {
    strbuf_puts(b, "cycles        not counted in fast mode\n");
  }
}

static void report_engines(const NpurtModel *m, StrBuf *b) {
  const NpurtProfile *p = &m->profile;
  strbuf_puts(b, "\nengine  instructions    busy cycles   busy %   wait sem %   wait queue/plane % "
                 "  idle %         energy\n");
  for (int e = 0; e < ENGINE_NET; e++) {
    strbuf_printf(
        b, "%-6s %13llu %14.0f %8.1f %12.1f %20.1f %8.1f  ", isa_engine_name((IsaEngine)e),
        (unsigned long long)p->engine[e].instructions, whole(p->engine[e].busy),
        percent(p->engine[e].busy, p->cycles), percent(p->engine[e].stall_take, p->cycles),
        percent(p->engine[e].stall_queue, p->cycles), percent(p->engine[e].idle, p->cycles));
    put_energy(b, p->engine[e].energy);
    strbuf_puts(b, "\n");
  }
}

/* What the array did, and the part of it in columns that the planes have. */
static void put_useful(StrBuf *b, double macs, double useful) {
  put_scaled(b, macs, "");
  strbuf_puts(b, ", useful");
  put_scaled(b, useful, "");
  if (macs > 0) strbuf_printf(b, " (%.1f %%)", percent(useful, macs));
}

static void report_work(const NpurtModel *m, StrBuf *b) {
  const NpurtProfile *p = &m->profile;
  const struct {
    const char *name, *unit;
    double amount;
  } moved[] = {{"DRAM read", "B", p->dram_read},       {"DRAM written", "B", p->dram_write},
               {"DRAM rows opened", "", p->dram_rows}, {"scratchpad", "B", p->spm_bytes},
               {"accumulators", "B", p->acc_bytes},    {"vector lane ops", "", p->vpu_ops},
               {"  special", "", p->sfu_ops}};
  strbuf_puts(b, "\n");
  for (size_t i = 0; i < NPU_COUNTOF(moved); i++) {
    strbuf_printf(b, "%-16s", moved[i].name);
    put_scaled(b, moved[i].amount, moved[i].unit);
    strbuf_puts(b, "\n");
  }
  strbuf_puts(b, "array s8 MACs   ");
  put_useful(b, p->macs_s8, p->useful_s8);
  strbuf_puts(b, "\narray bf16 MACs ");
  put_useful(b, p->macs_bf16, p->useful_bf16);
  strbuf_puts(b, "\n");
}

static void report_roofline(const NpurtModel *m, StrBuf *b) {
  const NpurtProfile *p = &m->profile;
  if (p->bound <= 0) {
    strbuf_puts(b,
                "\nroofline       nothing stated: the program does not say what its model needs\n");
    return;
  }
  strbuf_printf(b, "\nroofline       compute %.0f cycles, DRAM %.0f cycles: bound by %s\n",
                whole(p->bound_compute), whole(p->bound_dram),
                p->bound_compute >= p->bound_dram ? "compute" : "DRAM");
  strbuf_printf(b, "               %.1f %% of the bound (%.0f of %.0f cycles)\n",
                percent(p->bound, p->cycles), whole(p->bound), whole(p->cycles));
  strbuf_puts(b, "  compute      ");
  put_scaled(b, p->macs, "");
  strbuf_puts(b, " MACs of the model, at the machine's peak\n  DRAM         ");
  put_scaled(b, p->bound_bytes, "B");
  strbuf_puts(b, " of inputs, states, weights and outputs, each byte once\n");
}

static void report_energy(const NpurtModel *m, StrBuf *b) {
  const IsaEnergy *e = &m->profile.energy;
  const struct {
    const char *name;
    double pj;
  } part[] = {
#define X(member, name) {name, e->member},
      ISA_ENERGIES(X)
#undef X
  };
  strbuf_puts(b, "\nenergy             ");
  put_energy(b, e->total);
  strbuf_puts(b, "\n");
  for (size_t i = 0; i < NPU_COUNTOF(part); i++) {
    strbuf_printf(b, "  %-17s", part[i].name);
    put_energy(b, part[i].pj);
    strbuf_printf(b, "  %5.1f %%\n", percent(part[i].pj, e->total));
  }
}

/* A cell of the ops' table: a prefix or a unit takes the place of a blank. */
static void put_cell(StrBuf *b, double v, const char *unit) {
  put_scaled(b, v, unit);
  strbuf_puts(b, v >= 1000 ? "  " : "   ");
}

static void report_ops(const NpurtModel *m, StrBuf *b) {
  double cycles = m->profile.cycles;
  strbuf_printf(b, "\n%-29s %-22s %14s %6s  %10s  %10s  %11s  %11s  %11s  %13s\n", "source op",
                "place", "cycles", "%", "MACs", "array MACs", "DRAM bytes", "SPM bytes",
                "ACC bytes", "energy");
  for (size_t i = 0; i < m->nops; i++) {
    const NpurtOpProfile *o = &m->ops[i];
    if (!o->instructions && o->cycles <= 0) continue;
    char place[64] = "";
    const char *slash = strrchr(o->file, '/');
    if (o->line) snprintf(place, sizeof place, "%.40s:%u", slash ? slash + 1 : o->file, o->line);
    strbuf_printf(b, "%-29.29s %-22.22s %14.0f %6.1f  ", o->op[0] ? o->op : "(program)", place,
                  whole(o->cycles), percent(o->cycles, cycles));
    put_cell(b, o->macs, "");
    put_cell(b, o->array_macs, "");
    put_cell(b, o->dram_bytes, "B");
    put_cell(b, o->spm_bytes, "B");
    put_cell(b, o->acc_bytes, "B");
    put_energy(b, o->energy);
    strbuf_puts(b, "\n");
  }
}

void npurt_report(const NpurtModel *m, StrBuf *out) {
  report_totals(m, out);
  if (m->profile.cycles > 0) report_engines(m, out);
  report_work(m, out);
  if (m->profile.cycles > 0) report_roofline(m, out);
  report_energy(m, out);
  report_ops(m, out);
}

void npurt_summary(const NpurtModel *m, StrBuf *out) {
  const NpurtProfile *p = &m->profile;
  strbuf_printf(out, "%.0f cycles, %.3f us, %.3f uJ in %llu run%s\n", whole(p->cycles),
                seconds(m, p->cycles) * 1e6, p->energy.total * 1e-6, (unsigned long long)p->runs,
                p->runs == 1 ? "" : "s");
}
