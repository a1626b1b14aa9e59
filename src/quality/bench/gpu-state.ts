import type { NativeGpuState } from '../../addon/native-engine.js';
import type { GpuState } from './result.js';

/** Bits of nvmlClocksEventReasons (NVML API reference, "nvmlClocksEventReasons"), by our words. */
const reasonNames: readonly (readonly [number, string])[] = [
  [0x1, 'gpu-idle'],
  [0x2, 'applications-clocks-setting'],
  [0x4, 'software-power-cap'],
  [0x8, 'hardware-slowdown'],
  [0x10, 'sync-boost'],
  [0x20, 'software-thermal-slowdown'],
  [0x40, 'hardware-thermal-slowdown'],
  [0x80, 'hardware-power-brake'],
  [0x100, 'display-clock-setting'],
];

/** Reasons by name; a bit that NVML added later keeps its number. */
export function throttleReasons(bits: number): string[] {
  const names = reasonNames.filter(([bit]) => (bits & bit) !== 0).map(([, name]) => name);
  const known = reasonNames.reduce((sum, [bit]) => sum | bit, 0);
  const rest = bits & ~known;
  return rest === 0 ? names : [...names, `reason-0x${(rest >>> 0).toString(16)}`];
}

/** The state with its reasons named. */
export const namedState = (state: NativeGpuState): GpuState => ({
  ...state,
  throttleReasons: state.throttleReasons === null ? null : throttleReasons(state.throttleReasons),
  processes: state.processes === null ? null : state.processes.map((each) => ({ ...each })),
});
