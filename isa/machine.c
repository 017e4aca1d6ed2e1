/* Machine descriptions: "key = value" text read with inih, every key from machine.def exactly once.
 */
#include "isa/isa_internal.h"
#include <ini.h>
#include <math.h>
#include <string.h>

/* Generated from isa/machines/NAME.txt by isa/machines/embed.cmake. */
#include "isa/machines_data.h"

typedef enum { TYPE_int64_t, TYPE_double } FieldType;
typedef enum { CLASS_SIZE, CLASS_TIME, CLASS_ENERGY } FieldClass;
static const struct {
  const char *key;
  FieldType type;
  FieldClass class;
  size_t offset;
  double ideal, min, max;
} fields[] = {
#define MFIELD(member, type, key, class, ideal, min, max, doc)                                     \
  {key, TYPE_##type, CLASS_##class, offsetof(MachineDesc, member), ideal, min, max},
#include "isa/machine.def"
#undef MFIELD
};
enum { NFIELDS = NPU_COUNTOF(fields) };

const MachineDesc *machine_default(void) {
  return &machine_edge;
}
size_t machine_builtin_count(void) {
  return NPU_COUNTOF(builtin_machines);
}
const char *machine_builtin_name(size_t i) {
  return i < NPU_COUNTOF(builtin_machines) ? builtin_machines[i].name : NULL;
}

double machine_seq_cycles(const MachineDesc *m) {
  return 1 / m->seq_ipc;
}
double machine_dram_bytes_per_cycle(const MachineDesc *m) {
  return m->dram_gbs / m->clock_ghz;
}
double machine_dram_latency_cycles(const MachineDesc *m) {
  return m->dram_latency_ns * m->clock_ghz;
}
double machine_dram_open_cycles(const MachineDesc *m) {
  return m->dram_channels ? m->dram_topen_ns * m->clock_ghz / (1 - m->dram_refresh) : 0;
}

/* v is in the field's range, and exact: integers end at 2^40. */
static void set_field(MachineDesc *m, size_t i, double v) {
  uint8_t *p = (uint8_t *)m + fields[i].offset;
  int64_t n = (int64_t)v;
  if (fields[i].type == TYPE_int64_t)
    memcpy(p, &n, sizeof n);
  else
    memcpy(p, &v, sizeof v);
}

void machine_idealize(MachineDesc *m) {
  for (size_t i = 0; i < NFIELDS; i++)
    if (fields[i].ideal != NONE) set_field(m, i, fields[i].ideal);
}

/* ---- reading ---- */

typedef struct {
  const char *pos, *end, *label;
  uint32_t line; /* of the text last handed to inih */
  bool at_start; /* of a line */
  MachineDesc *out;
  DiagEngine *diag;
  bool seen[NFIELDS], seen_name, ok;
} Reader;

/* inih's lines are at most 200 bytes; what a longer comment has beyond that is dropped. */
static char *read_line(char *buf, int size, void *user) {
  Reader *r = user;
  if (r->pos >= r->end || size < 2) return NULL;
  if (r->at_start) r->line++;
  int n = 0;
  char c = 0;
  while (r->pos < r->end && n < size - 1 && c != '\n') {
    c = *r->pos++;
    buf[n++] = c ? c : '?'; /* a NUL would end the line early */
  }
  buf[n] = 0;
  bool comment = r->at_start && (buf[0] == '#' || buf[0] == ';');
  while (comment && c != '\n' && r->pos < r->end) c = *r->pos++;
  r->at_start = c == '\n';
  return buf;
}

static SrcLoc here(const Reader *r) {
  return (SrcLoc){.file = r->label, .line = r->line, .col = 1};
}

static void read_value(Reader *r, size_t i, const char *value) {
  double d = 0;
  int64_t n = 0;
  bool is_int = fields[i].type == TYPE_int64_t;
  bool parsed = is_int ? parse_i64(value, &n) : parse_f64(value, &d);
  if (is_int) d = (double)n;
  bool large = !parsed && number_too_large(value, is_int);
  if (!large && (!parsed || !isfinite(d))) {
    diag_error(r->diag, here(r), "E-machine", "'%s' is not %s; write %s = %s", value,
               is_int ? "an integer" : "a finite number", fields[i].key, is_int ? "64" : "1.5");
    r->ok = false;
    return;
  }
  if (large || d < fields[i].min || d > fields[i].max) {
    diag_error(r->diag, here(r), "E-machine", "%s = %s is out of range: allowed are %.15g to %.15g",
               fields[i].key, value, fields[i].min, fields[i].max);
    r->ok = false;
    return;
  }
  set_field(r->out, i, d);
}

static void read_name(Reader *r, const char *value) {
  size_t n = strlen(value);
  bool ok = n > 0 && n < sizeof r->out->name;
  for (size_t i = 0; i < n; i++) ok = ok && value[i] > ' ' && value[i] < 127;
  if (!ok) {
    diag_error(r->diag, here(r), "E-machine",
               "a machine's name has 1 to 31 printable characters without spaces");
    r->ok = false;
    return;
  }
  memcpy(r->out->name, value, n + 1);
}

static void unknown_key(Reader *r, const char *name) {
  const char *names[NFIELDS];
  for (size_t i = 0; i < NFIELDS; i++) names[i] = fields[i].key;
  const char *near = str_nearest(name, names, NFIELDS);
  diag_error(r->diag, here(r), "E-machine", "unknown key '%s'%s%s%s", name,
             near ? ", did you mean '" : "; the keys are listed in isa/README.md", near ? near : "",
             near ? "'?" : "");
  r->ok = false;
}

/* NFIELDS: there is no such key. */
static size_t find_key(const char *name) {
  size_t i = 0;
  while (i < NFIELDS && strcmp(fields[i].key, name) != 0) i++;
  return i;
}

static int on_pair(void *user, const char *section, const char *name, const char *value) {
  Reader *r = user;
  (void)section;
  bool *seen = NULL;
  size_t i = 0;
  if (strcmp(name, "name") == 0) {
    seen = &r->seen_name;
  } else {
    i = find_key(name);
    if (i == NFIELDS) {
      unknown_key(r, name);
      return 1;
    }
    seen = &r->seen[i];
  }
  if (*seen) {
    diag_error(r->diag, here(r), "E-machine", "'%s' is given twice; keep one", name);
    r->ok = false;
  } else if (seen == &r->seen_name) {
    read_name(r, value);
  } else {
    read_value(r, i, value);
  }
  *seen = true;
  return 1;
}

/* What no field says alone. */
static bool fields_agree(const MachineDesc *m, const char *label, DiagEngine *diag) {
  const struct {
    const char *key;
    int64_t value;
  } powers[] = {{"dram_channels", m->dram_channels},
                {"dram_interleave", m->dram_interleave},
                {"dram_banks", m->dram_banks},
                {"dram_row_bytes", m->dram_row_bytes}};
  bool ok = true;
  for (size_t i = 0; i < NPU_COUNTOF(powers); i++) {
    int64_t v = powers[i].value;
    if ((v & (v - 1)) == 0) continue;
    diag_error(diag, (SrcLoc){.file = label}, "E-machine",
               "%s = %lld is not a power of two, which the hash of addresses needs", powers[i].key,
               (long long)v);
    ok = false;
  }
  if (m->spm_bytes_per_cycle < m->spm_word) {
    diag_error(diag, (SrcLoc){.file = label}, "E-machine",
               "spm_bytes_per_cycle = %lld is less than spm_word = %lld: there is no bank",
               (long long)m->spm_bytes_per_cycle, (long long)m->spm_word);
    ok = false;
  }
  if (m->dram_row_bytes >= m->dram_interleave) return ok;
  diag_error(diag, (SrcLoc){.file = label}, "E-machine",
             "dram_row_bytes = %lld is less than dram_interleave = %lld",
             (long long)m->dram_row_bytes, (long long)m->dram_interleave);
  return false;
}

/* One message for all that is missing: a binary or a file from before a field existed lacks
 * several. */
static bool all_seen(const Reader *r) {
  StrBuf list = {0};
  int missing = 0;
  for (size_t i = 0; i < NFIELDS; i++)
    if (!r->seen[i]) strbuf_printf(&list, "%s'%s'", missing++ ? ", " : "", fields[i].key);
  if (missing)
    diag_error(r->diag, (SrcLoc){.file = r->label}, "E-machine",
               "%s %s missing: a machine states every parameter of isa/README.md; add a line "
               "'key = value' for each, or compile a binary again",
               list.data, missing > 1 ? "are" : "is");
  strbuf_free(&list);
  return missing == 0;
}

bool machine_parse_at(const char *text, size_t len, const char *label, uint32_t first_line,
                      MachineDesc *out, DiagEngine *diag) {
  memset(out, 0, sizeof *out);
  Reader r = {.pos = text,
              .end = text + len,
              .label = label,
              .line = first_line - 1,
              .at_start = true,
              .out = out,
              .diag = diag,
              .ok = true};
  int bad = ini_parse_stream(read_line, &r, on_pair, &r);
  if (bad != 0) {
    SrcLoc loc = {.file = label, .line = bad > 0 ? first_line + (uint32_t)bad - 1 : 0, .col = 1};
    diag_error(diag, loc, "E-machine", "expected 'key = value' or a comment starting with '#'");
    return false;
  }
  if (!r.seen_name) {
    diag_error(diag, (SrcLoc){.file = label}, "E-machine",
               "the machine has no name; add 'name = ...'");
    r.ok = false;
  }
  return all_seen(&r) && r.ok && fields_agree(out, label, diag);
}

bool machine_parse(const char *text, size_t len, const char *label, MachineDesc *out,
                   DiagEngine *diag) {
  return machine_parse_at(text, len, label, 1, out, diag);
}

static void unknown_machine(const char *name, const char *why, DiagEngine *diag) {
  StrBuf list = {0};
  for (size_t i = 0; i < machine_builtin_count(); i++)
    strbuf_printf(&list, "%s%s", i ? ", " : "", machine_builtin_name(i));
  diag_error(diag, SRC_LOC_NONE, "E-machine",
             "'%s' is neither a built-in machine (%s) nor a readable file (%s)", name, list.data,
             why);
  strbuf_free(&list);
}

static bool load_base(const char *name_or_path, MachineDesc *out, DiagEngine *diag) {
  for (size_t i = 0; i < NPU_COUNTOF(builtin_machines); i++)
    if (strcmp(builtin_machines[i].name, name_or_path) == 0) {
      *out = *builtin_machines[i].desc;
      return true;
    }
  FileMap map;
  const char *why = "";
  if (!diag_map_file(diag, name_or_path, &map, &why)) {
    unknown_machine(name_or_path, why, diag);
    return false;
  }
  diag_add_source(diag, name_or_path, (const char *)map.data, map.size);
  bool ok = machine_parse((const char *)map.data, map.size, name_or_path, out, diag);
  file_unmap(&map);
  return ok;
}

/* One change, `key=value` or `ideal`; cut is overwritten. */
static bool change(Reader *r, char *cut) {
  if (strcmp(cut, "ideal") == 0) {
    machine_idealize(r->out);
    return true;
  }
  char *value = strchr(cut, '=');
  if (!value) {
    diag_error(r->diag, here(r), "E-machine",
               "'%s' changes nothing: after a machine's name come key=value and 'ideal', with "
               "commas between",
               cut);
    return false;
  }
  *value++ = 0;
  size_t i = find_key(cut);
  if (i == NFIELDS)
    unknown_key(r, cut);
  else
    read_value(r, i, value);
  return r->ok;
}

bool machine_load(const char *spec, MachineDesc *out, DiagEngine *diag) {
  size_t base = strcspn(spec, ",");
  if (!spec[base] || file_exists(spec)) return load_base(spec, out, diag);
  Arena *arena = arena_new();
  char *text = arena_strdup(arena, spec), *next = text + base;
  *next++ = 0;
  bool ok = load_base(text, out, diag);
  Reader r = {.label = "--machine", .out = out, .diag = diag, .ok = true};
  while (ok && next) {
    char *cut = next;
    next = strchr(cut, ',');
    if (next) *next++ = 0;
    ok = change(&r, cut);
  }
  ok = ok && fields_agree(out, r.label, diag);
  size_t n = strlen(out->name);
  if (ok && n + 1 < sizeof out->name && (n == 0 || out->name[n - 1] != '+'))
    memcpy(out->name + n, "+", 2);
  arena_free(arena);
  return ok;
}

/* ---- writing and comparing ---- */

void machine_print(const MachineDesc *m, StrBuf *out) {
  strbuf_printf(out, "name = %s\n", m->name);
#define IS_int64_t(v) strbuf_printf(out, "%lld\n", (long long)(v));
#define IS_double(v)                                                                               \
  strbuf_double(out, v);                                                                           \
  strbuf_putc(out, '\n');
#define MFIELD(member, type, key, ...)                                                             \
  strbuf_puts(out, key " = ");                                                                     \
  IS_##type(m->member)
#include "isa/machine.def"
#undef MFIELD
}

static bool same_field(const MachineDesc *a, const MachineDesc *b, size_t i) {
  const uint8_t *p = (const uint8_t *)a + fields[i].offset,
                *q = (const uint8_t *)b + fields[i].offset;
  return memcmp(p, q, 8) == 0;
}

const char *machine_difference(const MachineDesc *a, const MachineDesc *b) {
  if (strcmp(a->name, b->name) != 0) return "name";
  for (size_t i = 0; i < NFIELDS; i++)
    if (!same_field(a, b, i)) return fields[i].key;
  return NULL;
}

const char *machine_size_difference(const MachineDesc *a, const MachineDesc *b) {
  for (size_t i = 0; i < NFIELDS; i++)
    if (fields[i].class == CLASS_SIZE && !same_field(a, b, i)) return fields[i].key;
  return NULL;
}
