// What a model's multiplications would take at the FMA peak: no kernel that computes all of them could be faster. Transforms, memory and everything that
// does not multiply are left out. Winograd nodes need 36 products for 16 outputs of 9 taps, a quarter of what their shapes say. Products of
// integers have a peak of their own, so a model that has any gets no bound.
const kWinogradSaving = 4;

// `description` is that of `sluice inspect --json`, `peak` in GFLOP/s. In milliseconds, or undefined.
export function boundMs(description, peak) {
  const classes = Object.entries(description.numeric);
  if (classes.some(([name, { macs }]) => name === 'int8' && macs > 0)) return undefined;
  const products = classes.reduce((sum, [name, { macs }]) => sum + macs / (name.startsWith('winograd') ? kWinogradSaving : 1), 0);
  return (2 * products) / (peak * 1e6);
}
