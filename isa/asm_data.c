/* .segment name address size, then lines of data until .end: .hex, .b64, .zero and typed values. */
#include "isa/asm_internal.h"
#include <ctype.h>
#include <string.h>

static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = (char)tolower((unsigned char)c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hex_line(Asm *a, StrBuf *out) {
  size_t len;
  SrcLoc loc = asm_loc(a);
  const char *s = asm_rest(a, &len);
  int high = -1;
  for (size_t i = 0; i < len; i++) {
    if (isspace((unsigned char)s[i])) continue;
    int v = hex_value(s[i]);
    if (v < 0) return asm_error_at(a, loc, "'%c' is not a hexadecimal digit", s[i]);
    if (high < 0)
      high = v;
    else {
      strbuf_putc(out, (char)(high * 16 + v));
      high = -1;
    }
  }
  return high < 0 || asm_error_at(a, loc, "an odd number of hexadecimal digits");
}

static int b64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* RFC 4648, whole groups of four per line. */
static bool b64_line(Asm *a, StrBuf *out) {
  SrcLoc loc = asm_loc(a);
  const char *s = a->line_text + a->tok.col - 1; /* '//' is data here, not a comment */
  const char *nl = memchr(s, '\n', (size_t)(a->end - s));
  const char *end = nl ? nl : a->end;
  unsigned bits = 0, have = 0, chars = 0, pad = 0;
  for (; s < end; s++) {
    if (isspace((unsigned char)*s)) continue;
    chars++;
    if (*s == '=' && ++pad <= 2) continue;
    int v = b64_value(*s);
    if (v < 0 || pad) return asm_error_at(a, loc, "not base64 text");
    bits = bits << 6 | (unsigned)v;
    have += 6;
    if (have >= 8) {
      have -= 8;
      strbuf_putc(out, (char)(bits >> have & 255));
    }
  }
  a->pos = end;
  asm_next(a);
  return chars % 4 == 0 || asm_error_at(a, loc, "base64 text comes in groups of four characters");
}

static bool value_line(Asm *a, DType t, StrBuf *out) {
  do {
    double v;
    uint8_t bytes[8] = {0};
    if (!asm_real(a, "a value", &v)) return false;
    dtype_set(t, bytes, 0, v);
    strbuf_write(out, bytes, dtype_size(t));
  } while (asm_accept(a, ','));
  return asm_expect_end(a);
}

static bool zero_line(Asm *a, StrBuf *out, uint64_t size) {
  int64_t n;
  if (!asm_int(a, 1, ASM_ZERO_MAX, "a number of bytes", &n)) return false;
  if (out->len > size || (uint64_t)n > size - out->len)
    return asm_error(a, "the data is longer than the segment's %llu bytes",
                     (unsigned long long)size);
  static const uint8_t zeros[4096];
  for (; n > 0; n -= 4096) strbuf_write(out, zeros, n < 4096 ? (size_t)n : 4096);
  return asm_expect_end(a);
}

static bool data_line(Asm *a, StrBuf *out, uint64_t size) {
  DType t;
  bool dot = a->tok.kind == TOK_WORD && a->tok.text[0] == '.';
  const char *kind = a->tok.text;
  if (dot && dtype_parse(kind + 1, &t) && t < DT_MACHINE_COUNT) {
    asm_next(a);
    return value_line(a, t, out);
  }
  bool hex = asm_is_word(a, ".hex"), b64 = asm_is_word(a, ".b64");
  if (!hex && !b64 && !asm_is_word(a, ".zero"))
    return asm_error(a, "expected .hex, .b64, .zero, .s8, .bf16, .f32, .s32 or .end, found '%s'",
                     kind);
  asm_next(a);
  return hex ? hex_line(a, out) : b64 ? b64_line(a, out) : zero_line(a, out, size);
}

bool asm_segment(Asm *a) {
  IsaSegment s = {0};
  SrcLoc loc = asm_loc(a);
  int64_t addr = 0, size = 0;
  bool ok = asm_string(a, "a segment name", &s.name) &&
            asm_int(a, 0, INT64_MAX, "an address", &addr) &&
            asm_int(a, 1, INT64_MAX, "a size", &size) && asm_expect_end(a);
  StrBuf data = {0};
  bool closed = false;
  while (!closed && asm_next_line(a)) {
    closed = asm_is_word(a, ".end");
    if (!closed && a->tok.kind != TOK_END) ok = data_line(a, &data, (uint64_t)size) && ok;
    if (data.len > (uint64_t)size && ok)
      ok =
          asm_error_at(a, loc, "the data is longer than the segment's %lld bytes", (long long)size);
  }
  if (!closed) ok = asm_error_at(a, loc, "the segment is not closed with '.end'");
  if (ok && data.len != (uint64_t)size)
    ok = asm_error_at(a, loc, "the segment has %zu bytes of data, not %lld; '.zero N' fills up",
                      data.len, (long long)size);
  if (ok) {
    s.addr = (uint64_t)addr;
    s.size = (uint64_t)size;
    s.data = arena_copy(a->arena, data.data, data.len);
    AsmSegment record = {s, loc};
    ASM_PUSH(a->segments, record);
  }
  strbuf_free(&data);
  return ok;
}
