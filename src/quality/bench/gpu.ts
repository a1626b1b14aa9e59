import { loadAddon } from '../../addon/addon.js';
import { chosenGpu, onDevice, visibleGpus } from '../../addon/gpus.js';
import type { NativeGpuState } from '../../addon/native-engine.js';
import type { WorkEvent } from '../../events.js';
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

/** The interval at which the GPU is polled while trtexec measures. */
const LOOK_MS = 250;

/** Looks at the GPU before, while trtexec measures (not while it loads), and after. */
export class GpuWatch {
  readonly before: GpuState | null;
  readonly during: GpuState[] = [];
  after: GpuState | null = null;
  readonly gpu: { readonly name: string; readonly uuid: string } | null;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    device: number,
    private readonly forward: (event: WorkEvent) => void,
  ) {
    this.gpu = gpuAt(device);
    this.before = this.#look();
  }

  readonly emit = (event: WorkEvent): void => {
    if (event.type === 'phase-start' && event.phase === 'measure') {
      this.#timer = setInterval(() => {
        const state = this.#look();
        if (state !== null) this.during.push(state);
      }, LOOK_MS);
    }
    if (event.type === 'phase-end' && event.phase === 'measure') clearInterval(this.#timer);
    this.forward(event);
  };

  end(): void {
    clearInterval(this.#timer);
    this.after = this.#look();
  }

  #look(): GpuState | null {
    if (this.gpu === null) return null;
    try {
      const state = loadAddon().gpuState(this.gpu.uuid);
      return state === null ? null : namedState(state);
    } catch {
      return null;
    }
  }
}

/** The GPU of an ordinal; null without driver or addon, which trtexec does not need. */
export function gpuAt(device: number): { readonly name: string; readonly uuid: string } | null {
  const [gpu] = onDevice(visibleGpus(), device).gpus;
  return gpu === undefined ? null : { name: gpu.name, uuid: gpu.uuid };
}

/** Throws TF_GPU_UNAVAILABLE where there are GPUs and this is none of them; where none is seen, trtexec itself reports what is wrong. */
export function rejectAbsentIfSeen(device: number): void {
  const list = visibleGpus();
  if (list.gpus.length > 0) chosenGpu(list, device, 'Measuring an engine needs an NVIDIA GPU');
}
