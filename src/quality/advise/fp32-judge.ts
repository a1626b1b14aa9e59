import { join } from 'node:path';
import type { OpenContext } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import { inferDtypes } from '../../formats/onnx/dtype-inference.js';
import { openModel } from '../../formats/onnx/model.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { writeMarked } from '../layers/common-tensors.js';
import { inTypesOf } from '../verify/sample-runs.js';
import { type Accuracy, AccuracySums } from './accuracy.js';
import type { JudgedTensors } from './judged-tensors.js';

interface Place {
  /** A folder for copies. */
  readonly work: string;
  readonly threads: number | undefined;
  readonly context: OpenContext;
}

/** Judges models by how close they are to FP32 on samples. */
export class Fp32Judge {
  readonly samples: readonly NamedTensors[];
  readonly tensors: JudgedTensors;
  readonly #place: Place;
  readonly #expected: NamedTensors[] = [];

  private constructor(samples: readonly NamedTensors[], tensors: JudgedTensors, place: Place) {
    this.samples = samples;
    this.tensors = tensors;
    this.#place = place;
  }

  /** Runs the FP32 model on the samples. Throws what opening and running it throw. */
  static async open(
    model: string,
    tensors: JudgedTensors,
    samples: readonly NamedTensors[],
    place: Place,
  ): Promise<Fp32Judge> {
    const judge = new Fp32Judge(samples, tensors, place);
    await judge.#run(model, (_, outputs) => judge.#expected.push(outputs));
    return judge;
  }

  async judge(path: string): Promise<Accuracy> {
    const sums = new AccuracySums(this.tensors.names);
    await this.#run(path, (sample, outputs) => sums.add(this.#expected[sample]!, outputs));
    return sums.result();
  }

  async #run(path: string, take: (sample: number, outputs: NamedTensors) => void): Promise<void> {
    const { threads, context, work } = this.#place;
    const { names, areInside } = this.tensors;
    const marked = areInside
      ? await markedCopy(path, join(work, 'marked.onnx'), names, context.signal)
      : path;
    await using session = await openSession(marked, { threads }, context);
    for (const [sample, inputs] of this.samples.entries()) {
      const outputs = await session.run(inTypesOf(session.inputs, inputs), { signal: context.signal });
      // Tensors of a run may be overwritten by the next one.
      take(
        sample,
        new Map(
          names.map((name) => [name, { ...outputs.get(name)!, bytes: outputs.get(name)!.bytes.slice() }]),
        ),
      );
    }
  }
}

async function markedCopy(
  path: string,
  copy: string,
  names: readonly string[],
  signal: AbortSignal | undefined,
): Promise<string> {
  const model = openModel(path);
  let types: ReadonlyMap<string, unknown>;
  try {
    types = inferDtypes(model.proto).graph.types;
  } finally {
    model.close();
  }
  const typed = names.map((name) => ({ name, dtype: (types.get(name) ?? 'float32') as Dtype }));
  await writeMarked(path, copy, typed, signal);
  return copy;
}
