/* Hears one of ten words on a bare Cortex-M4: with its linker script all that is wanted beside the emitted network.
 *
 *     sluice emit micro_kws_m_qdq.onnx --dim unk__68=1 --ram 8KiB -o net
 *     examples/microcontroller/run net        # builds it and runs it under QEMU
 *
 * A row of the input is 20 ms of sound as 40 bands, made when the network asks for it: only the rows of its first window are held. */
#include <string.h>

#include "micro_kws_m_qdq.h"

extern uint32_t bss_begin[], bss_end[], stack_top[];

static void call_host(uint32_t operation, const void* argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

/* What a microphone's buffer would hold, at 16 kHz: a saw tooth that rises from 300 Hz to 4 kHz in a second. */
static float sample(uint32_t i) { return (float)(int32_t)(i * 80530637u + i * (i + 1u) / 2u * 63343u) * 0x1p-31f; }

/* Goertzel's filter at each hundred Hz, and the logarithm of what passes it as the bits of a float have it. */
static void bands_of_row(void* user, uint32_t row, void* to) {
  float before = 1.0f, cosine = 0.99922904f; /* of 2 pi 100 Hz / 16 kHz; the others follow from each two before */
  uint32_t band, i, bits;
  (void)user;
  for (band = 0; band < micro_kws_m_qdq_INPUT_PIXELS * micro_kws_m_qdq_INPUT_CHANNELS; ++band) {
    float now = 0.0f, last = 0.0f, power, next = 2.0f * 0.99922904f * cosine - before;
    for (i = 0; i < 320; ++i) power = sample(row * 320u + i) + 2.0f * cosine * now - last, last = now, now = power;
    power = now * now + last * last - 2.0f * cosine * now * last + 1.0f;
    memcpy(&bits, &power, sizeof bits);
    ((micro_kws_m_qdq_input*)to)[band] = (micro_kws_m_qdq_input)((bits >> 20) - (127u << 3));
    before = cosine, cosine = next;
  }
}

void start(void) {
  char text[] = "word ?\n";
  uint32_t word, best = 0, status[2] = {0x20026u, 0u}; /* ADP_Stopped_ApplicationExit */
  *(volatile uint32_t*)0xe000ed88u |= 0xfu << 20;      /* the floating-point unit is off at reset */
  memset(bss_begin, 0, (size_t)((uintptr_t)bss_end - (uintptr_t)bss_begin));
  const micro_kws_m_qdq_output* scores = micro_kws_m_qdq_run(NULL, bands_of_row, NULL);
  for (word = 1; word < micro_kws_m_qdq_OUTPUT_CHANNELS; ++word)
    if (scores[word] > scores[best]) best = word;
  text[5] = (char)('0' + best);
  call_host(0x04, text);   /* SYS_WRITE0 */
  call_host(0x20, status); /* SYS_EXIT_EXTENDED */
}

/* What the processor reads at 0: its stack, and where it begins. */
__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {(void (*)(void))(uintptr_t)stack_top, start};
