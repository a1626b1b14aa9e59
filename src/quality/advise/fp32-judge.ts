import { join } from 'node:path';
import type { OpenContext } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import type { Binding } from '../../engines/runtime/session.js';
import { TrtforgeError } from '../../errors.js';
import { inferDtypes } from '../../formats/onnx/dtype-inference.js';
import { openModel } from '../../formats/onnx/model.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { numbersOf } from '../../formats/tensor/values.js';
import { writeMarked } from '../layers/common-tensors.js';
import { judgeRuns } from '../verify/judge-runs.js';
import { unrepeatable } from '../verify/repeatable.js';
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

  /**
   * Runs the FP32 model on the samples. Throws TF_CALIBRATION_INVALID where it computes NaN, TF_BISECT_REFERENCE where a second run of the first sample differs,
   * what opening and running it throw.
   */
  static async open(
    model: string,
    tensors: JudgedTensors,
    samples: readonly NamedTensors[],
    place: Place,
  ): Promise<Fp32Judge> {
    const judge = new Fp32Judge(samples, tensors, place);
    const expected = judge.#expected;
    const marked = await judge.#marked(model);
    await judge.#run(marked, samples, (_, outputs) => expected.push(outputs));
    assertNumbers(model, expected);
    const again: NamedTensors[] = [];
    const opened = await judge.#run(marked, samples.slice(0, 1), (_, outputs) => again.push(outputs));
    await assertRepeats(model, opened, expected.slice(0, 1), again);
    return judge;
  }

  async judge(path: string): Promise<Accuracy> {
    const sums = new AccuracySums(this.tensors.names);
    const marked = await this.#marked(path);
    await this.#run(marked, this.samples, (sample, outputs) => sums.add(this.#expected[sample]!, outputs));
    return sums.result();
  }

  /** The model with the judged tensors as outputs: itself, or a copy that the next one replaces. */
  async #marked(path: string): Promise<string> {
    const { context, work } = this.#place;
    const { names, areInside } = this.tensors;
    return areInside ? markedCopy(path, join(work, 'marked.onnx'), names, context.signal) : path;
  }

  async #run(
    marked: string,
    samples: readonly NamedTensors[],
    take: (sample: number, outputs: NamedTensors) => void,
  ): Promise<Opened> {
    const { threads, context } = this.#place;
    const { names } = this.tensors;
    await using session = await openSession(marked, { threads }, context);
    for (const [sample, inputs] of samples.entries()) {
      const outputs = await session.run(inTypesOf(session.inputs, inputs), { signal: context.signal });
      // Tensors of a run may be overwritten by the next one.
      take(
        sample,
        new Map(
          names.map((name) => [name, { ...outputs.get(name)!, bytes: outputs.get(name)!.bytes.slice() }]),
        ),
      );
    }
    const bindings = session.outputs.filter(({ name }) => names.includes(name));
    return { path: marked, bindings, seedsRepeat: session.seedsRepeat };
  }
}

/** A model as it ran: its tensors are outputs of the file. */
interface Opened {
  readonly path: string;
  readonly bindings: readonly Binding[];
  readonly seedsRepeat: boolean;
}

function assertNumbers(model: string, expected: readonly NamedTensors[]): void {
  for (const [sample, outputs] of expected.entries())
    for (const [name, tensor] of outputs)
      if (numbersOf(tensor).some(Number.isNaN))
        throw new TrtforgeError(
          'TF_CALIBRATION_INVALID',
          `${model} in FP32 computes NaN: its ${name} has NaN in held-out sample ${sample + 1} of ${expected.length}.`,
          {
            remedy: 'Remove the sample, or correct the model: a candidate cannot be compared with NaN.',
            details: { tensor: name, sample },
          },
        );
}

async function assertRepeats(
  model: string,
  { path, bindings, seedsRepeat }: Opened,
  first: readonly NamedTensors[],
  again: readonly NamedTensors[],
): Promise<void> {
  const request = { reference: path, candidate: path };
  const reference = { bindings, outputs: first };
  const judgement = judgeRuns(request, 'fp32', reference, { bindings, outputs: again });
  const doubts = await unrepeatable(request, 'fp32', judgement, reference, seedsRepeat, async () => again);
  const [doubted] = doubts;
  if (doubted === undefined) return;
  const [tensor, doubt] = doubted;
  throw new TrtforgeError('TF_BISECT_REFERENCE', `${model} cannot judge a candidate: ${doubt}`, {
    remedy: 'Pass a model that repeats: replace nodes that draw random numbers by constants.',
    details: { tensor },
  });
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
