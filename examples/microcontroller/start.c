/* Start of a bare-metal program on a Cortex-M: memory, stack, main, and the little that it says, by semihosting.
 *
 * The stack is painted before main and looked at afterwards, so that what a run took is known. BOARD_TIMER, if defined, is the address of a
 * timer of the board (CMSDK, 25 MHz); under `qemu -icount shift=0`, where an instruction takes a nanosecond, it counts 40 of them. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern uint32_t stack_bottom[], stack_top[], data_from[], data_begin[], data_end[], bss_begin[], bss_end[];
int main(void);
int puts(const char* text);
void start(void);

#define PAINT 0x5a5a5a5au

static uint32_t call_host(uint32_t operation, const void* argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

int puts(const char* text) {
  call_host(0x04, text); /* SYS_WRITE0 */
  call_host(0x04, "\n");
  return 0;
}

static void say_number(const char* what, uint32_t number) {
  char text[48];
  char* at = text + sizeof text - 1;
  *at = '\0';
  do *--at = (char)('0' + number % 10u);
  while ((number /= 10u) != 0);
  call_host(0x04, what);
  puts(at);
}

void start(void) {
  uint32_t block[2] = {0x20026u, 0u}; /* ADP_Stopped_ApplicationExit, status */
  uint32_t* at;
#if defined(BOARD_TIMER)
  volatile uint32_t* const timer = (volatile uint32_t*)BOARD_TIMER;
#endif
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  *(volatile uint32_t*)0xe000ed88u |= 0xfu << 20; /* the floating-point unit is off at reset */
  __asm__ volatile("dsb\n isb" ::: "memory");
#endif
  memcpy(data_begin, data_from, (size_t)((uintptr_t)data_end - (uintptr_t)data_begin));
  memset(bss_begin, 0, (size_t)((uintptr_t)bss_end - (uintptr_t)bss_begin));
  for (at = stack_bottom; at < (uint32_t*)__builtin_frame_address(0) - 16; ++at) *at = PAINT;
#if defined(BOARD_TIMER)
  timer[2] = timer[1] = 0xffffffffu; /* it counts down from there */
  timer[0] = 1u;
#endif
  block[1] = (uint32_t)main();
#if defined(BOARD_TIMER)
  say_number("thousand instructions: ", (0xffffffffu - timer[1]) / 25u);
#endif
  for (at = stack_bottom; *at == PAINT; ++at) {
  }
  say_number("stack bytes: ", (uint32_t)((uintptr_t)stack_top - (uintptr_t)at));
  call_host(0x20, block); /* SYS_EXIT_EXTENDED */
  for (;;) {
  }
}

static void stop(void) {
  uint32_t block[2] = {0x20026u, 99u};
  puts("a fault stopped the program");
  call_host(0x20, block);
  for (;;) {
  }
}

/* What the processor reads at 0. */
__attribute__((section(".vectors"), used)) static const struct {
  uint32_t* stack;
  void (*handlers[15])(void);
} vectors = {stack_top, {start, stop, stop, stop, stop, stop, NULL, NULL, NULL, NULL, stop, stop, NULL, stop, stop}};
