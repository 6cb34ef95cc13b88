/* Attention of heads: softmax(scale * Q K^T) V. A score is one chain of fused multiply-adds over the head's channels, an output one over
 * the keys; scores are computed twice, so that they need no room. */
#ifndef SLUICE_PORTABLE_ATTENTION_H
#define SLUICE_PORTABLE_ATTENTION_H

#include "sluice/portable/functions.h"
#include "sluice/portable/lane_sum.h"
#include "sluice/portable/rows.h"

typedef struct sluice_attention {
  uint16_t heads, depth, width; /* channels of a head in queries and keys; in values and the output */
  uint16_t queries, keys;       /* of a batch */
  uint8_t causal;               /* a query sees the keys up to its own alone */
  float scale;
} sluice_attention;

/* The keys and values that one row sees, from a row of their tensors on. */
typedef struct sluice_seen {
  const sluice_task* task;
  uint32_t first, count;
} sluice_seen;

SLUICE_FN const float* sluice_seen_row(const sluice_seen* seen, uint32_t input, uint32_t t) {
  return (const float*)(const void*)sluice_at(seen->task->arena, &seen->task->stage->inputs[input].view, seen->first + t, 0);
}

SLUICE_FN float sluice_score(const sluice_attention* p, const sluice_seen* seen, const float* query, uint32_t head, uint32_t t) {
  const float* key = sluice_seen_row(seen, 1, t) + (size_t)head * p->depth;
  float sum = 0.0f;
  uint32_t c;
  for (c = 0; c < p->depth; ++c) sum = sluice_fma(query[c], key[c], sum);
  return sum * p->scale;
}

SLUICE_FN void sluice_attend(const sluice_attention* p, const sluice_seen* seen, const float* query, uint32_t head, float* out) {
  sluice_lanes lanes;
  float greatest = sluice_float(0xff800000u), total;
  uint32_t t, c;
  sluice_clear_lanes(&lanes);
  for (t = 0; t < seen->count; ++t) {
    const float score = sluice_score(p, seen, query, head, t);
    greatest = greatest < score ? score : greatest;
  }
  for (c = 0; c < p->width; ++c) out[c] = 0.0f;
  for (t = 0; t < seen->count; ++t) {
    const float weight = sluice_exp(sluice_score(p, seen, query, head, t) - greatest);
    const float* value = sluice_seen_row(seen, 2, t) + (size_t)head * p->width;
    lanes.sums[t % 16] += weight;
    for (c = 0; c < p->width; ++c) out[c] = sluice_fma(weight, value[c], out[c]);
  }
  total = sluice_lanes_total(&lanes);
  for (c = 0; c < p->width; ++c) out[c] /= total;
}

SLUICE_FN void sluice_run_attention(const sluice_task* task) {
  const sluice_stage* stage = task->stage;
  const sluice_attention* p = (const sluice_attention*)stage->parameters;
  const float* query = (const float*)(const void*)sluice_at(task->arena, &stage->inputs[0].view, task->row, 0);
  float* out = (float*)(void*)sluice_at(task->arena, &stage->out, task->row, 0);
  sluice_seen seen;
  uint32_t head;
  seen.task = task;
  seen.first = task->row / p->queries * p->keys;
  seen.count = p->causal ? (uint32_t)p->keys - p->queries + task->row % p->queries + 1u : p->keys;
  for (head = 0; head < p->heads; ++head) sluice_attend(p, &seen, query + (size_t)head * p->depth, head, out + (size_t)head * p->width);
}

#endif
