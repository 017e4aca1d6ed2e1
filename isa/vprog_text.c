/* Vector programs as text: one micro-operation per line or separated by ';'. Immediates: integers,
 * reals (decimal, hex float, inf, nan), or 0x... without 'p': the 32 bits themselves. */
#include "isa/isa_internal.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

static uint32_t float_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static bool fail(char why[160], const char *text, const char *word) {
  snprintf(why, 160, "%s '%.60s'", text, word);
  return false;
}

static bool looks_real(const char *w) {
  if (w[0] == '-' || w[0] == '+') w++;
  if (w[0] == '0' && (w[1] == 'x' || w[1] == 'X')) return strpbrk(w, "pP") != NULL;
  return strpbrk(w, ".eE") != NULL || strncmp(w, "inf", 3) == 0 || strncmp(w, "nan", 3) == 0;
}

static bool parse_imm(const char *word, IsaImmType type, uint32_t *out, char why[160]) {
  bool hex = word[0] == '0' && (word[1] == 'x' || word[1] == 'X');
  if (looks_real(word)) {
    double d;
    if (type == IMM_INT)
      return fail(why, "an integer operation cannot take the real immediate", word);
    if (!parse_f64(word, &d))
      return fail(why, number_too_large(word, false) ? "too large:" : "not a number:", word);
    *out = float_bits((float)d);
    return true;
  }
  int64_t i;
  if (number_too_large(word, true)) return fail(why, "an immediate has 32 bits:", word);
  if (!parse_i64(word, &i)) return fail(why, "expected a register or an immediate, found", word);
  if (type == IMM_FLOAT && !hex) {
    *out = float_bits((float)i);
    return true;
  }
  if (i < INT32_MIN || i > (hex ? (int64_t)UINT32_MAX : (int64_t)INT32_MAX))
    return fail(why, "an immediate has 32 bits:", word);
  *out = (uint32_t)i;
  return true;
}

static bool parse_number(const char *s, unsigned limit, unsigned *out) {
  unsigned v = 0;
  if (!isdigit((unsigned char)*s) || (s[0] == '0' && s[1])) return false;
  for (; isdigit((unsigned char)*s) && v < 1000; s++) v = v * 10 + (unsigned)(*s - '0');
  *out = v;
  return *s == 0 && v < limit;
}

static bool parse_reg(const char *word, uint8_t *out) {
  unsigned n;
  if (word[0] == 'v' && parse_number(word + 1, ISA_VREGS, &n)) {
    *out = (uint8_t)n;
    return true;
  }
  if (word[0] == 'r' && parse_number(word + 1, ISA_RREGS, &n)) {
    *out = (uint8_t)(VARG_R0 + n);
    return true;
  }
  return false;
}

static bool parse_operand(char letter, const char *word, IsaVop *v, bool *have_imm, char why[160]) {
  unsigned n;
  if (letter == 'd')
    return parse_reg(word, &v->dst) ||
           fail(why, "expected a destination v0..v15 or r0..r7, found", word);
  if (letter == 's') {
    if (word[0] != 's' || !parse_number(word + 1, ISA_STREAMS, &n))
      return fail(why, "expected a stream s0..s7, found", word);
    v->stream = (uint8_t)n;
    return true;
  }
  uint8_t *slot = letter == 'a' ? &v->a : letter == 'b' ? &v->b : &v->c;
  if (parse_reg(word, slot)) return true;
  uint32_t imm;
  if (!parse_imm(word, isa_vop_imm_type((IsaVopKind)v->op), &imm, why)) return false;
  if (*have_imm && imm != v->imm)
    return fail(why, "a micro-operation has one immediate; put the other in a register:", word);
  *have_imm = true;
  v->imm = imm;
  *slot = VARG_IMM;
  return true;
}

/* Copies the next word (up to a separator in stop or white space) into word; false when empty. */
static bool next_word(const char **s, const char *end, const char *stop, char word[64]) {
  while (*s < end && isspace((unsigned char)**s)) (*s)++;
  size_t n = 0;
  while (*s < end && !isspace((unsigned char)**s) && !strchr(stop, **s)) {
    if (n < 63) word[n++] = **s;
    (*s)++;
  }
  word[n] = 0;
  while (*s < end && isspace((unsigned char)**s)) (*s)++;
  return n > 0;
}

static bool unknown_name(const char *word, char why[160]) {
  const char *names[VOP_COUNT];
  for (unsigned k = 0; k < VOP_COUNT; k++) names[k] = isa_vop_info((IsaVopKind)k)->mnemonic;
  const char *near = str_nearest(word, names, VOP_COUNT);
  if (near)
    snprintf(why, 160, "unknown micro-operation '%.40s', did you mean '%s'?", word, near);
  else
    snprintf(why, 160, "unknown micro-operation '%.40s'", word);
  return false;
}

bool isa_vop_parse(const char *text, size_t len, IsaVop *out, char why[160]) {
  const char *s = text, *end = text + len;
  char word[64], letters[8];
  IsaVopKind k;
  memset(out, 0, sizeof *out);
  if (!next_word(&s, end, ",", word)) return fail(why, "expected a micro-operation", "");
  if (!isa_vop_by_name(word, &k)) return unknown_name(word, why);
  out->op = (uint8_t)k;
  bool have_imm = false;
  isa_vop_letters(k, letters);
  for (size_t i = 0; letters[i]; i++) {
    if (i > 0) {
      if (s >= end || *s != ',') {
        snprintf(why, 160, "%s takes '%s'", isa_vop_info(k)->mnemonic, isa_vop_info(k)->operands);
        return false;
      }
      s++;
    }
    if (!next_word(&s, end, ",", word)) {
      snprintf(why, 160, "%s takes '%s'", isa_vop_info(k)->mnemonic, isa_vop_info(k)->operands);
      return false;
    }
    if (!parse_operand(letters[i], word, out, &have_imm, why)) return false;
  }
  if (s < end) {
    snprintf(why, 160, "unexpected text after the operands of %s", isa_vop_info(k)->mnemonic);
    return false;
  }
  return true;
}

bool isa_vprog_parse(const char *text, IsaVprog *out, char why[160]) {
  memset(out, 0, sizeof *out);
  while (*text) {
    size_t len = strcspn(text, ";\n");
    const char *s = text, *end = text + len;
    while (s < end && isspace((unsigned char)*s)) s++;
    if (s < end) {
      if (out->n == ISA_VPROG_MAX) return fail(why, "more than 64 micro-operations", "");
      if (!isa_vop_parse(s, (size_t)(end - s), &out->ops[out->n], why)) return false;
      out->n++;
    }
    text = *end ? end + 1 : end;
  }
  return true;
}

/* ---- printing ---- */

static void print_float(uint32_t bits, StrBuf *out) {
  float f;
  memcpy(&f, &bits, 4);
  if (isnan(f))
    strbuf_printf(out, "0x%08x", (unsigned)bits); /* keeps sign and payload */
  else
    strbuf_float(out, f);
}

static void print_imm(IsaVopKind k, uint32_t bits, StrBuf *out) {
  IsaImmType t = isa_vop_imm_type(k);
  unsigned exponent = bits >> 23 & 255;
  /* mov, sel and st take either: bit patterns with an everyday exponent read best as reals. */
  bool real = t == IMM_FLOAT || (t == IMM_ANY && exponent >= 0x40 && exponent <= 0xbf);
  if (real)
    print_float(bits, out);
  else
    strbuf_printf(out, "%d", (int)(int32_t)bits);
}

static void print_reg(uint8_t a, StrBuf *out) {
  if (a < VARG_R0)
    strbuf_printf(out, "v%u", (unsigned)a);
  else
    strbuf_printf(out, "r%u", (unsigned)a - VARG_R0);
}

void isa_vop_print(const IsaVop *v, StrBuf *out) {
  char letters[8];
  IsaVopKind k = (IsaVopKind)v->op;
  strbuf_puts(out, isa_vop_info(k)->mnemonic);
  isa_vop_letters(k, letters);
  for (size_t i = 0; letters[i]; i++) {
    strbuf_puts(out, i ? ", " : " ");
    if (letters[i] == 's') {
      strbuf_printf(out, "s%u", (unsigned)v->stream);
      continue;
    }
    uint8_t a = letters[i] == 'd'   ? v->dst
                : letters[i] == 'a' ? v->a
                : letters[i] == 'b' ? v->b
                                    : v->c;
    if (a == VARG_IMM)
      print_imm(k, v->imm, out);
    else
      print_reg(a, out);
  }
}

void isa_vprog_print(const IsaVprog *p, const char *separator, StrBuf *out) {
  for (int i = 0; i < p->n; i++) {
    if (i) strbuf_puts(out, separator);
    isa_vop_print(&p->ops[i], out);
  }
}
