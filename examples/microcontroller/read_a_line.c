/* Reads a word on a microcontroller, with the trained reader of examples/models:
 *
 *     sluice emit examples/models/reader.onnx --dim W=144 --ram 128KiB -o net
 *     examples/microcontroller/run net read_a_line
 *
 * A row of ink is made when the network asks for it, as a line camera would give it. Each step of the output names a character or none;
 * repeats and nones are left out. */
#include <stdio.h>

#include "line.h"
#include "reader.h"

static const char characters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz .,:;-/%'()+=!?&_#<>";

static void row_of_ink(void* user, uint32_t row, void* to) {
  reader_input* ink = (reader_input*)to;
  uint32_t x;
  (void)user;
  for (x = 0; x < reader_INPUT_PIXELS; ++x) {
    const char digit = line_of_text[row][x];
    ink[x] = (reader_input)(digit <= '9' ? digit - '0' : digit - 'a' + 10) / 15.0f;
  }
}

int main(void) {
  static char text[reader_OUTPUT_ROWS + 1];
  const reader_output* scores = reader_run(NULL, row_of_ink, NULL);
  uint32_t step, c, length = 0, last = 0;
  for (step = 0; step < reader_OUTPUT_ROWS; ++step, scores += reader_OUTPUT_CHANNELS) {
    uint32_t best = 0;
    for (c = 1; c < reader_OUTPUT_CHANNELS; ++c)
      if (scores[c] > scores[best]) best = c;
    if (best != 0 && best != last) text[length++] = characters[best - 1];
    last = best;
  }
  puts(text);
  return length == 0;
}
