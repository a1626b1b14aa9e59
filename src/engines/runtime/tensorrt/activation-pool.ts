import type { NativeDeviceMemory, NativeEngine } from '../../../addon/native-engine.js';
import { TrtforgeError } from '../../../errors.js';

/** A loaded engine, as far as its activations go. */
interface PoolEngine {
  readonly native: NativeEngine;
  readonly gpu: { readonly index: number };
  readonly plan: { readonly path: string };
}

/**
 * GPU memory for the activations of several engines of this process, one run at a time: as many bytes as the largest engine needs, in the place of the sum.
 * Sessions join when they are opened; the memory is allocated at the first run, and freed with the last session.
 */
export class ActivationPool {
  /** Bytes that the largest profile of each engine needs. */
  readonly #members = new Map<NativeEngine, number>();
  #gpu: number | undefined;
  #memory: NativeDeviceMemory | undefined;
  #isBusy = false;

  /** Bytes of the memory: what the largest engine needs. */
  get bytes(): number {
    return this.#memory?.bytes ?? Math.max(0, ...this.#members.values());
  }

  /** Bytes that the same engines take with memory of their own each. */
  get separateBytes(): number {
    return [...this.#members.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Throws TF_SESSION_INPUT for an engine on another GPU, and for one that needs more than the memory has after the first run. */
  join({ native, gpu, plan }: PoolEngine): void {
    const needed = native.facts.deviceMemoryBytes;
    if (this.#gpu !== undefined && this.#gpu !== gpu.index)
      throw new TrtforgeError(
        'TF_SESSION_INPUT',
        `${plan.path} is on GPU ${gpu.index}, the activation pool on GPU ${this.#gpu}.`,
        { remedy: 'Make one pool for each GPU.' },
      );
    if (this.#memory !== undefined && needed > this.#memory.bytes)
      throw new TrtforgeError(
        'TF_SESSION_INPUT',
        `${plan.path} needs ${needed} bytes for activations; the pool has ${this.#memory.bytes} since its first run.`,
        { remedy: 'Open all engines of a pool before the first of them runs.' },
      );
    this.#gpu = gpu.index;
    this.#members.set(native, needed);
  }

  leave(native: NativeEngine): void {
    this.#members.delete(native);
    if (this.#members.size > 0) return;
    this.#memory?.close();
    this.#memory = undefined;
    this.#gpu = undefined;
  }

  /** Throws TF_GPU_MEMORY. */
  memory(native: NativeEngine): NativeDeviceMemory {
    this.#memory ??= native.allocate(this.bytes);
    return this.#memory;
  }

  /** Begins a run, which ends with the function that is returned. Throws TF_SESSION_BUSY while another is under way. */
  take(): () => void {
    if (this.#isBusy)
      throw new TrtforgeError(
        'TF_SESSION_BUSY',
        'A run was requested while another run uses the same activation pool.',
      );
    this.#isBusy = true;
    return () => {
      this.#isBusy = false;
    };
  }
}

/** Memory for the activations of sessions that run in turn, which is their option `memory`. */
export const activationPool = (): ActivationPool => new ActivationPool();
