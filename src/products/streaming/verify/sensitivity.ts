import { inDtype } from '../../../engines/run/inputs.js';
import { TrtforgeError } from '../../../errors.js';
import type { Reference } from '../../../formats/reference/reference.js';
import { comparePairs } from '../../../formats/tensor/compare/comparison.js';
import { type Dtype, elementCount } from '../../../formats/tensor/dtype.js';
import { floatReader } from '../../../formats/tensor/float-reader.js';
import { randomStream } from '../../../formats/tensor/random.js';
import { copiedTensor, type NamedTensors, type Tensor } from '../../../formats/tensor/tensor.js';
import { tensorReader } from '../../../formats/tensor/tensor-reader.js';
import { float32Values, floatTensor } from '../../../formats/tensor/values.js';
import type { ChunkRunner } from './candidate.js';
import type { StreamOutcome } from './outcome.js';
import { fedBackPairs, mainOutput, type StreamPlan } from './plan.js';

export interface StateSensitivity extends Sensitivity {
  /** Whose recorded inputs were disturbed. */
  readonly chunk: number;
}

/**
 * Disturbs every floating-point state of the last chunk that was run, one at a time, and measures how far the main output moves. The chunk's recorded
 * inputs are read again: at the end of a stream the state is as full as it gets, at its beginning most models mask all of it. Empty where no chunk was
 * run or nothing is fed back. Throws TF_PARITY_MISFIT when a state was recorded at the beginning only.
 */
export async function disturbState(
  plan: StreamPlan,
  runner: ChunkRunner,
  reference: Reference,
  { chunks }: Pick<StreamOutcome, 'chunks'>,
): Promise<readonly StateSensitivity[]> {
  const output = mainOutput(plan);
  const last = chunks.findLastIndex(({ error }) => error === null);
  const fedBack = new Set(fedBackPairs(plan).map(({ input }) => input));
  const states = plan.inputs.filter(({ name, dtype }) => fedBack.has(name) && isDisturbable(dtype));
  if (output === null || last < 0 || states.length === 0) return [];
  const inputs = await inputsOf(plan, reference, last);
  const run = async (all: NamedTensors): Promise<NamedTensors> => {
    const side = (isState: boolean) => new Map([...all].filter(([name]) => fedBack.has(name) === isState));
    return (await runner.step(side(false), side(true))).outputs;
  };
  const found: StateSensitivity[] = [];
  for (const { name } of states) {
    const sensitivity = await sensitivityTo(name, output, inputs, run);
    found.push({ ...sensitivity, chunk: chunks[last]!.chunk });
  }
  return found;
}

/** The candidate's inputs of one recorded chunk, state included. Throws TF_PARITY_MISFIT when something was not recorded. */
async function inputsOf(
  { inputs, reference: path }: StreamPlan,
  reference: Reference,
  position: number,
): Promise<NamedTensors> {
  const taken = new Set(inputs.map(({ name }) => name));
  const chunks = reference.chunks({
    select: (side, name, at) => side === 'inputs' && at === position && taken.has(name),
    limit: position + 1,
  });
  let recorded: NamedTensors = new Map();
  for await (const chunk of chunks) recorded = chunk.inputs;
  return new Map(
    inputs.map((binding): [string, Tensor] => {
      const tensor = recorded.get(binding.name);
      if (tensor !== undefined) return [binding.name, inDtype(binding, tensor, path)];
      throw new TrtforgeError(
        'TF_PARITY_MISFIT',
        `${path} does not record ${binding.name} in its last chunk, so no state can be disturbed there.`,
        {
          remedy:
            'Remove --sensitivity, or record every input of every chunk: `trtforge stream record` does.',
        },
      );
    }),
  );
}

/** The movement of an output when one input is disturbed. */
export interface Sensitivity {
  readonly input: string;
  readonly output: string;
  readonly effects: readonly {
    readonly perturbation: string;
    readonly maxAbs: number;
    readonly meanAbs: number;
  }[];
  readonly maxEffect: number;
  /** Below 1e-5 the input is not used; below 1e-3 it hardly matters; above, it does. */
  readonly level: 'not-used' | 'weakly-sensitive' | 'strongly-sensitive';
}

/** Types that noise can be added to. */
const isDisturbable = (dtype: Dtype): dtype is 'float32' | 'float16' | 'bfloat16' =>
  dtype === 'float32' || dtype === 'float16' || dtype === 'bfloat16';

const NOISE = [0.1, 0.2, 0.3] as const;

/**
 * Runs one chunk as it is, with the input zeroed, and with normal noise of 0.1, 0.2 and 0.3 added, and measures how far the output moves. A state that is not
 * used explains why a wrong one does no harm, and why a right one is not proven right. Throws TF_SESSION_INPUT for inputs of other types.
 */
export async function sensitivityTo(
  input: string,
  output: string,
  inputs: NamedTensors,
  run: (inputs: NamedTensors) => Promise<NamedTensors>,
): Promise<Sensitivity> {
  const tensor = inputs.get(input);
  if (tensor === undefined || !isDisturbable(tensor.dtype))
    throw new TrtforgeError(
      'TF_SESSION_INPUT',
      `${input} is not a floating-point input, so it cannot be disturbed.`,
    );
  const undisturbed = copiedTensor(outputOf(await run(inputs), output));
  const effects: Sensitivity['effects'][number][] = [];
  const zeros = { ...tensor, bytes: new Uint8Array(tensor.bytes.length) };
  const disturbed: readonly (readonly [string, Tensor])[] = [
    ['zeros', zeros],
    ...NOISE.map((sigma) => [`noise ${sigma}`, noisy(tensor, sigma)] as const),
  ];
  for (const [perturbation, instead] of disturbed) {
    const moved = outputOf(await run(new Map([...inputs, [input, instead]])), output);
    const { absolute } = comparePairs(
      { candidate: floatReader(tensorReader(moved)), reference: floatReader(tensorReader(undisturbed)) },
      { absolute: 0, relative: 0 },
      'none',
    );
    effects.push({ perturbation, maxAbs: absolute.max, meanAbs: absolute.mean });
  }
  const maxEffect = Math.max(...effects.map(({ maxAbs }) => maxAbs));
  const level = maxEffect < 1e-5 ? 'not-used' : maxEffect < 1e-3 ? 'weakly-sensitive' : 'strongly-sensitive';
  return { input, output, effects, maxEffect, level };
}

function outputOf(outputs: NamedTensors, name: string): Tensor {
  const tensor = outputs.get(name);
  if (tensor !== undefined) return tensor;
  throw new TrtforgeError(
    'TF_SESSION_INPUT',
    `There is no output ${name}; the outputs are ${[...outputs.keys()].join(', ')}.`,
  );
}

function noisy(tensor: Tensor, sigma: number): Tensor {
  const stream = randomStream(0, `noise ${sigma}`);
  const values = new Float32Array(elementCount(tensor.shape));
  const original = float32Values(tensor);
  for (let at = 0; at < values.length; at++) values[at] = original[at]! + sigma * stream.normal();
  return floatTensor(tensor.dtype as 'float32', tensor.shape, values);
}
