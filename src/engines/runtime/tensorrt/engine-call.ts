import type { NativeCall, NativeHostData } from '../../../addon/native-engine.js';
import { finished } from '../../../addon/native-job.js';
import { TrtforgeError } from '../../../errors.js';
import { elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import {
  type ElementArray,
  elementsOf,
  isArrayDtype,
  type NamedTensors,
  type Tensor,
} from '../../../formats/tensor/tensor.js';
import { assertTensor, list, same } from '../check-inputs.js';
import type { CallShape } from './choose-profile.js';
import type { EngineBindings } from './engine-bindings.js';
import type { EngineBinding } from './engine-interface.js';

/** `outputs` of RunTarget, by name. */
type OutputTargets = 'pinned' | NamedTensors | undefined;

const NO_BYTES = new Uint8Array(0);

interface HostBytes extends NativeHostData {
  readonly data: Uint8Array;
}

const NOTHING: readonly HostBytes[] = [];

interface CallOutput {
  readonly binding: EngineBinding;
  /** Null where it depends on the data. */
  readonly shape: readonly number[] | null;
  readonly bytes: number;
}

interface FixedOutput extends CallOutput {
  readonly shape: readonly number[];
}

/** A call of the addon with its buffers as tensors. Inputs and outputs in `onDevice` are bound to device memory and have no buffer here. */
export class EngineCall {
  readonly profile: number;
  readonly shape: CallShape;
  readonly native: NativeCall;
  /** Pinned memory it holds. */
  readonly bytes: number;
  /** Buffers of the inputs that are copied to the device. */
  readonly inputs: ReadonlyMap<string, Tensor>;
  /** Buffers of the outputs whose shape is known before a run. */
  readonly outputs: ReadonlyMap<string, Tensor>;
  readonly #fixed: readonly FixedOutput[];
  readonly #dataDependent: readonly EngineBinding[];
  /** Refilled by each blocking run, so that it makes no objects. */
  readonly #feed: { readonly name: string; data: Uint8Array }[];
  /** Memory of runs that are over, by output. */
  readonly #spare = new Map<string, Uint8Array>();
  #running = 0;
  #ended = false;
  #order: Promise<unknown> = Promise.resolve();

  constructor(
    native: NativeCall,
    bindings: EngineBindings,
    made: { readonly profile: number; readonly shape: CallShape; readonly onDevice: ReadonlySet<string> },
  ) {
    this.native = native;
    this.profile = made.profile;
    this.shape = made.shape;
    const outputs = outputsOf(native, bindings).filter(({ binding }) => !made.onDevice.has(binding.name));
    this.#fixed = outputs.filter((output): output is FixedOutput => output.shape !== null);
    this.#dataDependent = outputs.filter(({ shape }) => shape === null).map(({ binding }) => binding);
    this.inputs = new Map(
      bindings.inputs.flatMap((input, at): [string, Tensor][] =>
        input.hostValues || made.onDevice.has(input.name)
          ? []
          : [[input.name, bufferTensor(native, input, made.shape.dims[at] ?? [])]],
      ),
    );
    this.outputs = new Map(
      this.#fixed.map(({ binding, shape }) => [binding.name, bufferTensor(native, binding, shape)]),
    );
    this.#feed = [...this.inputs.keys()].map((name) => ({ name, data: NO_BYTES }));
    this.bytes = [...this.inputs.values(), ...this.outputs.values()].reduce(
      (sum, { bytes }) => sum + bytes.length,
      0,
    );
  }

  get running(): number {
    return this.#running;
  }

  /** Runs with the given tensors, blocking; see RunTarget for where outputs go. */
  runSync(tensors: NamedTensors, requested: OutputTargets): NamedTensors {
    const feed = this.#feed;
    for (const item of feed) item.data = tensors.get(item.name)!.bytes;
    const targets = this.#targets(requested);
    this.native.runSync(feed, targets.into);
    for (const item of feed) item.data = NO_BYTES;
    return this.#withDataDependent(targets.tensors);
  }

  /** The same off this thread. */
  async run(
    tensors: NamedTensors,
    requested: OutputTargets,
    signal: AbortSignal | undefined,
  ): Promise<NamedTensors> {
    const feed = this.#feed.map(({ name }) => ({ name, data: tensors.get(name)!.bytes }));
    const { into, tensors: outputs } = this.#targets(requested);
    const fresh = requested === undefined || requested === 'pinned';
    // The caller may transfer an array in mid-run to a thread that frees it, so its bytes go there when the run is over.
    const written = fresh
      ? into
      : into.map((target) => (requested.has(target.name) ? this.#scratch(target) : target));
    const read = await this.#afterRun(() => this.start(feed, written, signal));
    into.forEach((target, at) => {
      const { data } = written[at]!;
      if (data !== target.data) this.#handOver(data, target);
    });
    return this.#withDataDependent(outputs, read);
  }

  #scratch({ name, data }: HostBytes): HostBytes {
    const spare = this.#spare.get(name);
    this.#spare.delete(name);
    return { name, data: spare ?? uninitialised(data.length) };
  }

  #handOver(written: Uint8Array, { name, data }: HostBytes): void {
    this.#spare.set(name, written);
    if (data.length !== written.length) {
      throw new TrtforgeError(
        'TF_SESSION_INPUT',
        `The array passed for the output ${name} has ${data.length} of ${written.length} bytes after the run: it was transferred or resized.`,
        { remedy: 'Keep the array until the run is over.' },
      );
    }
    if (written.length > 0) data.set(written);
  }

  /** Runs on what the buffers hold. `inputs` and `outputs` are extra copies in and out. */
  async start(
    inputs: readonly NativeHostData[] = NOTHING,
    outputs: readonly NativeHostData[] = NOTHING,
    signal?: AbortSignal,
  ): Promise<void> {
    await this.keep(() => finished(this.native.run(inputs, outputs), signal, 'running an engine'));
  }

  /** While `work` goes on the buffers stay, even of a call that is closed. */
  async keep(work: () => Promise<void>): Promise<void> {
    this.#running++;
    try {
      await work();
    } finally {
      this.#running--;
      if (this.#ended && this.#running === 0) this.native.close();
    }
  }

  /** An output of the last run: its buffer, or a copy where the shape depends on the data. */
  output(name: string): Tensor {
    const fixed = this.outputs.get(name);
    if (fixed !== undefined) return fixed;
    const binding = this.#dataDependent.find((each) => each.name === name);
    if (binding === undefined) {
      const known = [...this.outputs.keys(), ...this.#dataDependent.map((each) => each.name)];
      throw new TrtforgeError('TF_SESSION_INPUT', `There is no output ${name} here; there is ${known}.`);
    }
    return this.#readDataDependent(binding);
  }

  /** Gives the buffers back; at once, or when the last run is over. */
  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#running === 0) this.native.close();
  }

  /** Outputs of data-dependent shape are read after a run and before the next one, so such runs go one at a time. */
  #afterRun(start: () => Promise<void>): Promise<ReadonlyMap<string, Tensor> | undefined> {
    if (this.#dataDependent.length === 0) return start().then(() => undefined);
    const answer = this.#order.then(start).then(() => this.#readAllDataDependent());
    this.#order = answer.catch(() => {});
    return answer;
  }

  #withDataDependent(
    tensors: NamedTensors,
    read: ReadonlyMap<string, Tensor> | undefined = undefined,
  ): NamedTensors {
    if (this.#dataDependent.length === 0) return tensors;
    return new Map([...tensors, ...(read ?? this.#readAllDataDependent())]);
  }

  #readAllDataDependent(): ReadonlyMap<string, Tensor> {
    return new Map(
      this.#dataDependent.map((binding) => [binding.name, this.#readDataDependent(binding)] as const),
    );
  }

  #readDataDependent({ name, dtype }: EngineBinding): Tensor {
    const shape = this.native.lastShapes().find((each) => each.name === name)?.shape;
    if (shape === undefined) throw new TrtforgeError('TF_INTERNAL', `The last run left no shape of ${name}.`);
    const bytes = new Uint8Array(this.native.readOutput(name), 0, packedBytes(dtype, elementCount(shape)));
    return { dtype, shape: [...shape], bytes };
  }

  #targets(requested: OutputTargets): {
    readonly into: readonly HostBytes[];
    readonly tensors: NamedTensors;
  } {
    if (requested === 'pinned') return { into: NOTHING, tensors: this.outputs };
    if (requested !== undefined) this.#checkTargets(requested);
    const into: HostBytes[] = [];
    const tensors = new Map<string, Tensor>();
    for (const { binding, shape, bytes } of this.#fixed) {
      const tensor = requested?.get(binding.name) ?? {
        dtype: binding.dtype,
        shape,
        bytes: uninitialised(bytes),
      };
      into.push({ name: binding.name, data: tensor.bytes });
      tensors.set(binding.name, tensor);
    }
    return { into, tensors };
  }

  #checkTargets(given: NamedTensors): void {
    for (const [name, tensor] of given) {
      const output = this.#fixed.find(({ binding }) => binding.name === name);
      if (output === undefined) {
        throw new TrtforgeError(
          'TF_SESSION_INPUT',
          `A tensor to write ${name} into is passed, and ${name} is not an output whose shape is known before the run.`,
        );
      }
      assertTensor(name, tensor);
      const { binding, shape, bytes } = output;
      if (tensor.dtype === binding.dtype && same(tensor.shape, shape) && tensor.bytes.length === bytes)
        continue;
      throw new TrtforgeError(
        'TF_SESSION_INPUT',
        `The output ${name} is ${binding.dtype} ${list(shape)}; the tensor passed to write it into is ${tensor.dtype} ${list(tensor.shape)} of ${tensor.bytes.length} bytes.`,
      );
    }
  }
}

function outputsOf(native: NativeCall, bindings: EngineBindings): CallOutput[] {
  const made = new Map(native.outputs.map((output) => [output.name, output]));
  return bindings.outputs.map((binding) => {
    const shape = made.get(binding.name)?.shape ?? null;
    const bytes = shape === null ? 0 : packedBytes(binding.dtype, elementCount(shape));
    return { binding, shape, bytes };
  });
}

function bufferTensor(native: NativeCall, { name, dtype }: EngineBinding, shape: readonly number[]): Tensor {
  const bytes = packedBytes(dtype, elementCount(shape));
  return { dtype, shape, bytes: new Uint8Array(native.buffer(name), 0, bytes) };
}

/** The elements of a buffer, to write and read; bytes where JavaScript has no such type. */
export function elementsOfBuffer(tensor: Tensor): ElementArray {
  const { dtype } = tensor;
  return isArrayDtype(dtype) ? elementsOf({ ...tensor, dtype }) : tensor.bytes;
}

/** Memory that is about to be overwritten as a whole. */
const uninitialised = (bytes: number): Uint8Array =>
  new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer, 0, bytes);
