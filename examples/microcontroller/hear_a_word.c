/* Hears one of ten words on a microcontroller: keyword spotting with rows of sound features, as a front end makes them.
 *
 * The network is emitted from a keyword-spotting model of 49 x 40 features:
 *
 *     sluice emit micro_kws_m_qdq.onnx --dim unk__68=1 --ram 8KiB -o net
 *     examples/microcontroller/run net        # builds it for a Cortex-M4 and runs it under QEMU
 *
 * A row is 40 features of 20 ms. It is made when the network asks for it, so sound and network share RAM: no more than the rows that the first
 * layer's window covers are ever held. */
#include <stdio.h>

#include "micro_kws_m_qdq.h"

/* Stands for the front end: a tone that rises, as features of the network's own scale. */
static void features_of_row(void *user, uint32_t row, void *to) {
  micro_kws_m_qdq_input *features = (micro_kws_m_qdq_input *)to;
  uint32_t i, *rows = (uint32_t *)user;
  for (i = 0; i < micro_kws_m_qdq_INPUT_PIXELS * micro_kws_m_qdq_INPUT_CHANNELS; ++i) {
    const uint32_t distance = i > row * 4 / 5 ? i - row * 4 / 5 : row * 4 / 5 - i;
    features[i] = (micro_kws_m_qdq_input)(micro_kws_m_qdq_INPUT_ZERO + (distance < 4 ? 96 - 24 * distance : 0));
  }
  ++*rows;
}

int main(void) {
  static char text[] = "word ?";
  uint32_t rows = 0, word, best = 0;
  const micro_kws_m_qdq_output *scores = micro_kws_m_qdq_run(NULL, features_of_row, &rows);
  for (word = 1; word < micro_kws_m_qdq_OUTPUT_CHANNELS; ++word)
    if (scores[word] > scores[best]) best = word;
  text[5] = (char)('0' + best);
  puts(text);
  return rows != micro_kws_m_qdq_INPUT_ROWS;
}
