/* expand: a transposed convolution as zero insertion and a convolution with the flipped, transposed
 * weights. (Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
 * section 4.) */
#include "passes/expand.h"
#include "passes/lower_internal.h"
#include <string.h>

static IrValue *reshape_to(IrBuilder *b, IrValue *x, int rank, const int64_t *shape) {
  IrAttrInit attr = {"shape", ir_attr_ints(b->m, shape, (size_t)rank)};
  return ir_result(ir_build(b, IR_OP_RESHAPE, 1, &x, 1, &attr), 0);
}

static IrValue *pad_axes(IrBuilder *b, IrValue *x, const int64_t (*pads)[2]) {
  const IrAttr *pairs[IR_MAX_RANK];
  bool any = false;
  for (int i = 0; i < x->type->rank; i++) {
    pairs[i] = ir_attr_ints(b->m, pads[i], 2);
    any |= pads[i][0] != 0 || pads[i][1] != 0;
  }
  if (!any) return x;
  IrAttrInit attrs[2] = {{"pads", ir_attr_array(b->m, pairs, (size_t)x->type->rank)},
                         {"value", ir_attr_float(b->m, 0)}};
  return ir_result(ir_build(b, IR_OP_PAD, 1, &x, 2, attrs), 0);
}

IrValue *expand_slice(IrBuilder *b, IrValue *x, const int64_t *begin, const int64_t *end,
                      const int64_t *step) {
  size_t n = (size_t)x->type->rank;
  IrAttrInit attrs[3] = {{"begin", ir_attr_ints(b->m, begin, n)},
                         {"end", ir_attr_ints(b->m, end, n)},
                         {"step", ir_attr_ints(b->m, step, n)}};
  return ir_result(ir_build(b, IR_OP_SLICE, 1, &x, 3, attrs), 0);
}

/* x[n, c, h, w] with stride - 1 zeros after every element of h and w. */
static IrValue *insert_zeros(IrBuilder *b, IrValue *x, const int64_t stride[2]) {
  if (stride[0] == 1 && stride[1] == 1) return x;
  const int64_t *s = x->type->shape;
  int64_t apart[6] = {s[0], s[1], s[2], 1, s[3], 1};
  int64_t together[4] = {s[0], s[1], s[2] * stride[0], s[3] * stride[1]};
  int64_t pads[6][2] = {{0}, {0}, {0}, {0, stride[0] - 1}, {0}, {0, stride[1] - 1}};
  x = pad_axes(b, reshape_to(b, x, 6, apart), (const int64_t(*)[2])pads);
  return reshape_to(b, x, 4, together);
}

/* x with axis reversed, as single slices joined from the last to the first. */
static IrValue *reverse_axis(IrBuilder *b, IrValue *x, int axis) {
  int64_t n = x->type->shape[axis];
  if (n == 1) return x;
  IrValue **parts = mem_alloc(sizeof(IrValue *) * (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    int64_t begin[IR_MAX_RANK] = {0}, end[IR_MAX_RANK], step[IR_MAX_RANK];
    for (int a = 0; a < x->type->rank; a++) end[a] = x->type->shape[a], step[a] = 1;
    begin[axis] = n - 1 - i;
    end[axis] = n - i;
    parts[i] = expand_slice(b, x, begin, end, step);
  }
  IrAttrInit attr = {"axis", ir_attr_int(b->m, axis)};
  IrOp *joined = ir_build(b, IR_OP_CONCAT, (int)n, parts, 1, &attr);
  mem_free(parts);
  return ir_result(joined, 0);
}

/* Constant w [in, out/groups, kh, kw] as [out, in/groups, kh, kw] with both taps reversed. */
static IrValue *flip_constant(IrBuilder *b, const IrData *w, int64_t groups) {
  const int64_t *s = w->type->shape;
  int64_t in = s[0] / groups, out = s[1], taps = s[2] * s[3];
  int64_t shape[4] = {groups * out, in, s[2], s[3]};
  size_t size = dtype_size(w->type->dtype);
  void *bytes;
  const IrAttr *data =
      ir_attr_data_new(b->m, ir_type_tensor(b->m, w->type->dtype, 4, shape), &bytes);
  const char *from = w->bytes;
  char *to = bytes;
  for (int64_t g = 0; g < groups; g++)
    for (int64_t o = 0; o < out; o++)
      for (int64_t i = 0; i < in; i++)
        for (int64_t t = taps; t-- > 0; to += size)
          memcpy(to, from + (size_t)(((g * in + i) * out + o) * taps + t) * size, size);
  return ir_build_constant(b, data);
}

/* w [in, out/groups, kh, kw] to [out, in/groups, kh, kw] with both taps reversed. */
static IrValue *flip_weights(IrBuilder *b, IrValue *w, int64_t groups) {
  const IrData *known = ir_constant_data(w);
  if (known) return flip_constant(b, known, groups);
  const int64_t *s = w->type->shape;
  int64_t in = s[0] / groups, out = s[1], kh = s[2], kw = s[3];
  int64_t split[5] = {groups, in, out, kh, kw}, joined[4] = {groups * out, in, kh, kw};
  int64_t perm[5] = {0, 2, 1, 3, 4};
  IrValue *v = reshape_to(b, w, 5, split);
  IrAttrInit attr = {"perm", ir_attr_ints(b->m, perm, 5)};
  v = ir_result(ir_build(b, IR_OP_TRANSPOSE, 1, &v, 1, &attr), 0);
  v = reshape_to(b, v, 4, joined);
  return reverse_axis(b, reverse_axis(b, v, 2), 3);
}

static IrOp *expand_conv_transpose(IrOp *op) {
  IrOp *before = op->prev;
  IrBuilder b = ir_builder_before(op);
  IrValue *x = ir_operand(op, 0), *w = ir_operand(op, 1);
  const IrType *t = op->results[0].type;
  int64_t groups = ir_get_int(op, "groups", 1), stride[2], dilation[2], tlbr[4] = {0};
  attr_pair(op, "stride", 1, stride);
  attr_pair(op, "dilation", 1, dilation);
  conv_transpose_pads(op, tlbr);

  /* Around the input stand dilation * (k - 1) - pad zeros; a negative count crops instead. The far
   * side follows from the size of the result, for zero insertion leaves stride - 1 zeros at the
   * end. */
  int64_t pads[4][2] = {{0}}, begin[4] = {0}, end[4], step[4] = {1, 1, 1, 1};
  IrValue *z = insert_zeros(&b, x, stride);
  bool crop = false;
  for (int i = 0; i < 4; i++) end[i] = z->type->shape[i];
  for (int i = 0; i < 2; i++) {
    int64_t reach = dilation[i] * (w->type->shape[2 + i] - 1);
    int64_t lead = reach - tlbr[i];
    int64_t tail = t->shape[2 + i] + reach - lead - z->type->shape[2 + i];
    if (lead < 0) begin[2 + i] = -lead, crop = true;
    if (tail < 0) end[2 + i] += tail, crop = true;
    pads[2 + i][0] = lead > 0 ? lead : 0;
    pads[2 + i][1] = tail > 0 ? tail : 0;
  }
  if (crop) z = expand_slice(&b, z, begin, end, step);
  int64_t conv_pads[4] = {pads[2][0], pads[3][0], pads[2][1], pads[3][1]};
  IrValue *operands[3] = {z, flip_weights(&b, w, groups), NULL};
  if (op->noperands > 2) operands[2] = ir_operand(op, 2);
  IrAttrInit attrs[3] = {{"pad", ir_attr_ints(b.m, conv_pads, 4)},
                         {"dilation", ir_attr_ints(b.m, dilation, 2)},
                         {"groups", ir_attr_int(b.m, groups)}};
  IrOp *conv = ir_build(&b, IR_OP_CONV2D, op->noperands, operands, 3, attrs);
  ir_copy_hints(conv, op);
  conv->results[0].name = op->results[0].name;
  ir_replace_all_uses(&op->results[0], &conv->results[0]);
  IrBlock *block = op->parent;
  ir_op_erase(op);
  return before ? before->next : block->first;
}

bool op_expands(const IrOp *op) {
  return op->kind == IR_OP_CONV_TRANSPOSE2D;
}

IrOp *expand_op(IrOp *op) {
  return op_expands(op) ? expand_conv_transpose(op) : NULL;
}
