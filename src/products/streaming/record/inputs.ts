import { isBatchAxis } from '../../../engines/profiles/profile.js';
import type { Binding } from '../../../engines/runtime/session.js';
import { TrtforgeError } from '../../../errors.js';
import type { Contract } from '../../../formats/contract/contract.js';
import { filledTensor } from '../../../formats/contract/state.js';
import { elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import {
  isRandomDtype,
  type RandomDtype,
  randomStream,
  randomTensor,
} from '../../../formats/tensor/random.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';

/** One chunk of the stream: which frames of the signal it takes. */
export interface PlannedChunk {
  readonly chunk: number;
  readonly frames: number;
  /** First frame, counted from the beginning of the stream; null when chunks do not overlap by a known number of frames. */
  readonly start: number | null;
}

/** Positions of the chunks: each begins a shift after the one before, with its pre-encode frames in front. */
export function planChunks(
  contract: Pick<Contract, 'schedule'>,
  sizes: readonly number[],
  count: number,
): readonly PlannedChunk[] {
  const { schedule } = contract;
  const followsContract =
    schedule !== null &&
    sizes[0] === schedule.first &&
    sizes.slice(1).every((size) => size === schedule.rest);
  const shift = followsContract ? schedule.shift : null;
  return Array.from({ length: count }, (_, chunk) => {
    const frames = sizes[Math.min(chunk, sizes.length - 1)]!;
    if (shift === null || schedule === null) return { chunk, frames, start: null };
    const begin = chunk === 0 ? 0 : shift.first + (chunk - 1) * shift.rest;
    return {
      chunk,
      frames,
      start: begin - (chunk === 0 ? schedule.preEncode.first : schedule.preEncode.rest),
    };
  });
}

/** Fills the inputs of a session for a stream, from a seed. */
export class StreamInputs {
  readonly #contract: Contract;
  readonly #bindings: readonly Binding[];
  readonly #seed: number;
  readonly #batch: number;

  constructor(contract: Contract, bindings: readonly Binding[], options: { seed: number; batch: number }) {
    this.#contract = contract;
    this.#bindings = bindings;
    this.#seed = options.seed;
    this.#batch = options.batch;
  }

  /** State before the first chunk. */
  initialState(frames: number): Map<string, Tensor> {
    return new Map(
      this.#contract.state.flatMap(({ input, initial }): [string, Tensor][] => {
        const binding = this.#bindings.find(({ name }) => name === input);
        if (binding === undefined) return [];
        return [[input, filledTensor(binding.dtype, this.#shapeOf(binding, frames), initial)]];
      }),
    );
  }

  /** One tensor for each input. Throws TF_SHAPE_INVALID when a dimension is open and its size is not known; TF_SESSION_INPUT for types without numbers. */
  forChunk(chunk: PlannedChunk, state: NamedTensors): NamedTensors {
    return new Map(
      this.#bindings.map((binding): [string, Tensor] => [
        binding.name,
        state.get(binding.name) ?? this.#made(binding, chunk),
      ]),
    );
  }

  #made(binding: Binding, chunk: PlannedChunk): Tensor {
    const { name, dtype } = binding;
    const shape = this.#shapeOf(binding, chunk.frames);
    if (name === this.#contract.lengths.signal) return filledTensor(dtype, shape, chunk.frames);
    const { schedule } = this.#contract;
    if (name === schedule?.tensor && chunk.start !== null)
      return this.#slice(binding, shape, schedule.axis, chunk.start);
    const drawn = drawable(binding);
    const normal = { kind: 'normal', mean: 0, deviation: 1 } as const;
    return randomTensor(drawn, shape, normal, randomStream(this.#seed, `${name}/${chunk.chunk}`));
  }

  /** Frames by their place in the stream, so that overlapping chunks agree on the frames they share. */
  #slice({ name, dtype }: Binding, shape: readonly number[], axis: number, start: number): Tensor {
    const drawn = drawable({ name, dtype });
    const frames = shape[axis] ?? 0;
    const width = packedBytes(dtype, 1);
    const [outer, inner] = [elementCount(shape.slice(0, axis)), elementCount(shape.slice(axis + 1))];
    const bytes = new Uint8Array(outer * frames * inner * width);
    const normal = { kind: 'normal', mean: 0, deviation: 1 } as const;
    for (let frame = 0; frame < frames; frame++) {
      const stream = randomStream(this.#seed, `${name}/frame ${start + frame}`);
      const column = randomTensor(drawn, [outer, inner], normal, stream).bytes;
      for (let row = 0; row < outer; row++)
        bytes.set(
          column.subarray(row * inner * width, (row + 1) * inner * width),
          (row * frames + frame) * inner * width,
        );
    }
    return { dtype, shape, bytes };
  }

  /** Sizes from the session, then from the contract, then from what a symbol or an axis stands for. */
  #shapeOf(binding: Binding, frames: number): readonly number[] {
    const { schedule, state } = this.#contract;
    const promised = this.#contract.inputs.find(({ name }) => name === binding.name);
    const declared = binding.shape ?? promised?.shape ?? null;
    if (declared === null)
      throw new TrtforgeError(
        'TF_SHAPE_INVALID',
        `Neither the model nor the contract has the rank of ${binding.name}.`,
      );
    const pair = state.find(({ input }) => input === binding.name);
    return declared.map((size, axis) => {
      const other = promised?.shape?.[axis];
      if (typeof size === 'number') return size;
      if (typeof other === 'number') return other;
      if (binding.name === schedule?.tensor && axis === schedule.axis) return frames;
      if (pair?.axis === axis && pair.capacity !== null) return pair.capacity;
      const isBatch = [this.#bindings, this.#contract.inputs].some((inputs) =>
        isBatchAxis(inputs, binding.name, axis),
      );
      if (axis === 0 || isBatch) return this.#batch;
      throw new TrtforgeError(
        'TF_SHAPE_INVALID',
        `The size of dimension ${axis} (${size ?? '?'}) of the input "${binding.name}" is not known.`,
        { remedy: 'Pass a contract that has it: --contract FILE.' },
      );
    });
  }
}

function drawable({ name, dtype }: Pick<Binding, 'name' | 'dtype'>): RandomDtype {
  if (isRandomDtype(dtype)) return dtype;
  throw new TrtforgeError('TF_SESSION_INPUT', `No numbers can be drawn for the input "${name}" of ${dtype}.`);
}
