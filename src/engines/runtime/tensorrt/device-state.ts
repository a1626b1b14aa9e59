import type { NativeBinding, NativeDeviceMemory, NativeEngine } from '../../../addon/native-engine.js';
import { TrtforgeError } from '../../../errors.js';
import { canFeed } from '../../../formats/contract/state.js';
import { elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import type { Tensor } from '../../../formats/tensor/tensor.js';
import { checkDims, checkTensor, list, same } from '../check-inputs.js';
import type { EngineBindings } from './engine-bindings.js';
import type { EngineBinding, EngineState } from './engine-interface.js';

/** Which of the two memories holds the present content: the input of the next run. */
type BufferSide = 0 | 1;

interface StateTensor {
  readonly input: string;
  readonly output: string;
  readonly dtype: EngineBinding['dtype'];
  readonly shape: readonly number[];
  readonly bytes: number;
  readonly binding: EngineBinding;
  readonly memory: readonly [NativeDeviceMemory, NativeDeviceMemory];
}

/**
 * Each tensor has two memories on the device. A run reads one and writes the other, the next run the other way round, so that what one run wrote is
 * what the next one reads and nothing is ever copied. It takes two calls, one per direction; `side` is whose turn it is.
 */
export class DeviceState implements EngineState {
  readonly tensors: readonly StateTensor[];
  readonly engine: NativeEngine;
  #side: BufferSide = 0;
  #steps = 0;
  readonly #whenClosed: (state: DeviceState) => void;
  #ending: Promise<void> | undefined;
  #underWay = 0;
  #order: Promise<unknown> = Promise.resolve();

  constructor(
    engine: NativeEngine,
    bindings: EngineBindings,
    pairs: Readonly<Record<string, string>>,
    shapes: Readonly<Record<string, readonly number[]>>,
    whenClosed: (state: DeviceState) => void = () => {},
  ) {
    this.engine = engine;
    this.#whenClosed = whenClosed;
    const planned = planTensors(bindings, pairs, shapes);
    const allocated: NativeDeviceMemory[] = [];
    const allocate = (bytes: number): NativeDeviceMemory => {
      const memory = engine.allocate(bytes);
      allocated.push(memory);
      return memory;
    };
    try {
      this.tensors = planned.map((tensor) => ({
        ...tensor,
        memory: [allocate(tensor.bytes), allocate(tensor.bytes)],
      }));
    } catch (error) {
      for (const memory of allocated) memory.close();
      throw error;
    }
  }

  get steps(): number {
    return this.#steps;
  }

  get side(): BufferSide {
    return this.#side;
  }

  /** Throws TF_SESSION_CLOSED, and TF_SESSION_INPUT when runs are under way: a blocking run would overtake them. */
  checkIdle(): void {
    this.checkOpen();
    if (this.#underWay === 0) return;
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      'A blocking run was requested while other work on the same state is under way.',
      { remedy: 'Await that work first.' },
    );
  }

  checkOpen(): void {
    if (this.#ending !== undefined)
      throw new TrtforgeError('TF_SESSION_CLOSED', 'A state was used after it was closed.');
  }

  /** Makes the state that the last run wrote the one that the next reads. */
  advance(): void {
    this.#side = this.#side === 0 ? 1 : 0;
    this.#steps++;
  }

  /** Does work on the state after all that was asked for before. */
  inOrder<T>(work: () => Promise<T>): Promise<T> {
    this.#underWay++;
    const answer = this.#order.then(async () => {
      this.checkOpen();
      return work();
    });
    this.#order = answer.then(
      () => this.#underWay--,
      () => this.#underWay--,
    );
    return answer;
  }

  /** Bindings of the call that reads `side` and writes the other. */
  bindings(side: BufferSide): readonly NativeBinding[] {
    return this.tensors.flatMap(({ input, output, memory }): NativeBinding[] => [
      { name: input, kind: 'device', memory: memory[side], offset: 0 },
      { name: output, kind: 'device', memory: memory[side === 0 ? 1 : 0], offset: 0 },
    ]);
  }

  reset(): Promise<void> {
    return this.inOrder(async () => {
      await Promise.all(this.tensors.map((tensor) => this.#write(tensor, new Uint8Array(tensor.bytes))));
      this.#steps = 0;
    });
  }

  async read(input: string): Promise<Tensor> {
    const tensor = this.#tensor(input);
    const bytes = await this.inOrder(() => this.#read(tensor));
    return { dtype: tensor.dtype, shape: tensor.shape, bytes };
  }

  async write(input: string, content: Tensor): Promise<void> {
    const tensor = this.#tensor(input);
    checkTensor(tensor.binding, content);
    if (!same(content.shape, tensor.shape)) {
      throw new TrtforgeError(
        'TF_SESSION_INPUT',
        `The state ${input} is ${list(tensor.shape)}; the tensor passed for it is ${list(content.shape)}.`,
      );
    }
    await this.inOrder(() => this.#write(tensor, content.bytes));
  }

  close(): void {
    void this.end();
  }

  /** Closes, and settles when the work under way is over and the memory is given back. */
  end(): Promise<void> {
    this.#ending ??= this.#order.then(() => {
      for (const { memory } of this.tensors) for (const each of memory) each.close();
      this.#whenClosed(this);
    });
    return this.#ending;
  }

  async #read({ memory, bytes }: StateTensor): Promise<Uint8Array> {
    return new Uint8Array(await memory[this.#side].read(0, bytes).done);
  }

  async #write({ memory }: StateTensor, content: Uint8Array): Promise<void> {
    await memory[this.#side].write(content, 0).done;
  }

  #tensor(input: string): StateTensor {
    const tensor = this.tensors.find((each) => each.input === input);
    if (tensor !== undefined) return tensor;
    const known = this.tensors.map((each) => each.input).join(', ');
    throw new TrtforgeError('TF_SESSION_INPUT', `The state has no tensor ${input}; it has ${known}.`);
  }
}

function planTensors(
  bindings: EngineBindings,
  pairs: Readonly<Record<string, string>>,
  shapes: Readonly<Record<string, readonly number[]>>,
): readonly Omit<StateTensor, 'memory'>[] {
  const seen = new Set<string>();
  return Object.entries(pairs).map(([inputName, outputName]) => {
    const binding = find(bindings.inputs, inputName, 'input');
    const output = find(bindings.outputs, outputName, 'output');
    const mismatch = (why: string) =>
      new TrtforgeError('TF_SESSION_INPUT', `${outputName} cannot become the next ${inputName}: ${why}.`);
    if (seen.has(outputName)) throw mismatch('it feeds another input already');
    seen.add(outputName);
    if (binding.hostValues) throw mismatch(`the values of ${inputName} are read on the host`);
    if (binding.dtype !== output.dtype) throw mismatch(`one is ${output.dtype}, the other ${binding.dtype}`);
    const shape = shapes[inputName] ?? binding.shape;
    if (!shape.every((size) => size !== null)) {
      throw mismatch(
        `${inputName} is ${list(binding.shape.map((size) => size ?? '?'))}, so its shape must be passed`,
      );
    }
    if (!canFeed(output, { ...binding, shape }))
      throw mismatch(`one is ${list(output.shape.map((size) => size ?? '?'))}, the other ${list(shape)}`);
    const bytes = packedBytes(binding.dtype, elementCount(shape));
    checkDims(binding, shape);
    return { input: inputName, output: outputName, dtype: binding.dtype, shape, bytes, binding };
  });
}

function find(bindings: readonly EngineBinding[], name: string, what: string): EngineBinding {
  const binding = bindings.find((each) => each.name === name);
  if (binding !== undefined) return binding;
  const known = bindings.map((each) => each.name).join(', ');
  throw new TrtforgeError('TF_SESSION_INPUT', `There is no ${what} ${name}; there is ${known}.`);
}
