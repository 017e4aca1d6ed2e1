/* Parameters of a model: their defaults, and what is set from outside. */
#include <string.h>

#include "frontend/lower.h"

/* One -D: a whole number, or the text after the `=`. */
typedef struct {
  const char *name, *text;
  int64_t number;
  bool is_number;
} Setting;

typedef struct {
  Setting *items;
  size_t n;
} Settings;

static Settings collect(Lower *l, const MdlOptions *o) {
  Settings s = {0};
  if (!o) return s;
  s.items = ARENA_ARRAY(l->arena, Setting, o->ndefines + o->nsettings + 1);
  for (size_t i = 0; i < o->ndefines; i++) {
    const MdlDefine *d = &o->defines[i];
    s.items[s.n++] =
        (Setting){d->name, arena_printf(l->arena, "%lld", (long long)d->value), d->value, true};
  }
  for (size_t i = 0; i < o->nsettings; i++) {
    const char *eq = strchr(o->settings[i], '=');
    if (!eq) continue;
    Setting *set = &s.items[s.n++];
    set->name = arena_strndup(l->arena, o->settings[i], (size_t)(eq - o->settings[i]));
    set->text = arena_strdup(l->arena, eq + 1);
    set->is_number = parse_i64(eq + 1, &set->number);
  }
  return s;
}

static const Setting *find(const Settings *s, const char *name) {
  const Setting *found = NULL; /* the last one counts */
  for (size_t i = 0; i < s->n; i++)
    if (strcmp(s->items[i].name, name) == 0) found = &s->items[i];
  return found;
}

static void check_names(Lower *l, const Node *model, const Settings *s) {
  const char **names = ARENA_ARRAY(l->arena, const char *, model->list2.n + 1);
  size_t n = 0;
  NODE_EACH(p, model->list2) names[n++] = p->name;
  for (size_t i = 0; i < s->n; i++) {
    const char *name = s->items[i].name;
    bool known = false;
    for (size_t j = 0; j < n; j++) known |= strcmp(names[j], name) == 0;
    if (known) continue;
    const char *near = str_nearest(name, names, n);
    if (near)
      lower_error(l, model->loc, "E-param",
                  "-D %s: the model `%s` has no such parameter; did you mean `%s`?", name,
                  model->name, near);
    else
      lower_error(l, model->loc, "E-param",
                  "-D %s: the model `%s` has no such parameter; declare it with: with %s = ...",
                  name, model->name, name);
  }
}

/* What is set, in the kind of the default; without a default an integer. */
static bool convert(const Setting *s, Value dflt, Value *out, const char **want) {
  double real;
  switch (dflt.kind) {
  case VALUE_INT:
  case VALUE_POISON:
    *want = number_too_large(s->text, true) ? "an integer of 64 bits" : "an integer";
    *out = value_int(s->number);
    return s->is_number;
  case VALUE_REAL:
    *want = "a number";
    if (!parse_f64(s->text, &real)) return false;
    *out = value_real(real);
    return real == real; /* no NaN */
  case VALUE_BOOL:
    *want = "a boolean: true, false, 1 or 0";
    *out = value_bool(strcmp(s->text, "true") == 0 || strcmp(s->text, "1") == 0);
    return out->b || strcmp(s->text, "false") == 0 || strcmp(s->text, "0") == 0;
  case VALUE_TEXT: *out = (Value){.kind = VALUE_TEXT, .s = s->text}; return true;
  case VALUE_DTYPE:
    *want = "an element type: s8, bf16, f32 or s32";
    *out = (Value){.kind = VALUE_DTYPE};
    return dtype_parse(s->text, &out->dtype) && out->dtype < DT_MACHINE_COUNT;
  default: *want = "a list, which cannot be set from outside"; return false;
  }
}

static Value default_value(Lower *l, const Node *p) {
  Value v = p->a ? eval_one(l, p->a) : value_poison();
  if (v.kind != VALUE_TENSOR) return v;
  lower_error(l, p->a->loc, "E-const", "a parameter is known at compile time, found a tensor");
  return value_poison();
}

static Value param_value(Lower *l, const Node *p, const Setting *set) {
  Value dflt = default_value(l, p), v;
  const char *want = NULL;
  if (!set) {
    if (!p->a)
      lower_error(l, p->loc, "E-param", "the parameter `%s` has no default; give it with -D %s=...",
                  p->name, p->name);
    return dflt;
  }
  if (convert(set, dflt, &v, &want)) return v;
  lower_error(l, p->loc, "E-param", "-D %s=%s: this parameter is %s", p->name, set->text, want);
  return value_poison();
}

void params_bind(Lower *l, const Node *model, const MdlOptions *o) {
  Settings settings = collect(l, o);
  check_names(l, model, &settings);
  NODE_EACH(p, model->list2) {
    Binding *old = scope_find(l->scope, p->name);
    if (old) {
      old->value = value_poison();
      lower_error(l, p->loc, "E-duplicate", "the parameter `%s` is defined twice", p->name);
      lower_note(l, old->loc, "first defined here");
      continue;
    }
    Value v = param_value(l, p, find(&settings, p->name));
    v.from = p->loc;
    scope_bind(l, p->name, BIND_PARAM, v, p->loc, p);
  }
}
