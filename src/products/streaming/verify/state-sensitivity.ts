import { inDtype } from '../../../engines/run/inputs.js';
import { TrtforgeError } from '../../../errors.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { fedBackPairs, mainOutput, type StreamPlan } from '../compare/plan.js';
import type { Explanation } from '../compare/result-schema.js';
import { isDisturbable, type Sensitivity, sensitivityTo } from '../compare/sensitivity.js';
import type { StreamOutcome } from '../compare/stream-outcome.js';
import type { Reference } from '../recorded-stream.js';
import type { ChunkRunner } from './candidate.js';

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
  const last = chunks.findLastIndex(({ refused }) => refused === null);
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

/** What the candidate takes of one recorded chunk, state included. Throws TF_PARITY_MISFIT when something was not recorded. */
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
            'Leave --sensitivity out, or record every input of every chunk: trtforge stream record does.',
        },
      );
    }),
  );
}

/** A state that is not used does no harm when it is wrong, and a right one proves nothing. */
export const explainSensitivity = (found: readonly StateSensitivity[]): readonly Explanation[] =>
  found
    .filter(({ says }) => says === 'not-used')
    .map(({ input, output, chunk, maxEffect }) => ({
      id: 'state-not-used',
      severity: 'warning',
      sentence: `${output} does not depend on ${input}: with zeros or noise in its place in chunk ${chunk} it moves by ${maxEffect} at most, so agreement says nothing about this state.`,
      remedy:
        'Look whether the export cut it off, or a length of 0 masks all of it; a reference long enough to fill the state shows more.',
      evidence: { input, output, chunk, maxEffect },
    }));
