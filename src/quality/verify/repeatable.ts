import { TrtforgeError } from '../../errors.js';
import { viewModel } from '../../formats/onnx/model.js';
import { attributeOf } from '../../formats/onnx/operators.js';
import {
  isStored,
  type Operation,
  operatorName,
  readFlow,
  type Value,
} from '../../formats/precision/flow.js';
import { inlined } from '../../formats/precision/normalise.js';
import { drawsNumbers } from '../../formats/precision/operator-traits.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { failedOutputs, judgeRuns, type RunsJudgement } from './judge-runs.js';
import type { VerifyRequest } from './request.js';
import type { VerifyPrecision } from './result.js';
import type { ReferenceRun, SampleRuns, SideRun } from './sample-runs.js';

/**
 * The outputs of a model that depend on random numbers, each with a node that draws them. With `seedsRepeat` a node with a seed of its own is not random:
 * ONNX Runtime draws the same numbers from it in every process, TensorRT others.
 */
function randomOutputs(path: string, seedsRepeat: boolean): ReadonlyMap<string, string> {
  return viewModel(path, (model) => {
    const isFalse = ({ tensor }: Value) =>
      tensor !== undefined && [...model.weight(tensor).chunks()].every((bytes) => bytes[0] === 0);
    const draws = (operation: Operation) => {
      const { node, inputs } = operation;
      const training = node.opType === 'Dropout' ? inputs[2] : undefined;
      const isDropout = training !== undefined && !(isStored(training) && isFalse(training));
      if (!isDropout && !drawsNumbers(operatorName(operation))) return false;
      return !(seedsRepeat && attributeOf(node, 'seed') !== undefined);
    };
    const flow = readFlow(inlined(model).proto);
    const random = new Map<Value, string>();
    for (const operation of flow.operations) {
      const read = [...operation.inputs, ...operation.bodies.flatMap(({ outputs }) => outputs)];
      const from = read.find((value) => value !== undefined && random.has(value));
      const drawn = draws(operation) ? operation.label : from && random.get(from);
      if (drawn === undefined) continue;
      for (const output of operation.outputs) if (output !== undefined) random.set(output, drawn);
    }
    return new Map(
      flow.root.outputs.flatMap((value) => {
        const drawn = value && random.get(value);
        return value === undefined || drawn === undefined ? [] : [[value.name, drawn] as const];
      }),
    );
  });
}

/** Why a failure of an output shows nothing, by output: it depends on random numbers, or the reference does not agree with itself in a second run over the samples up to the first that failed. */
export async function unrepeatable(
  request: VerifyRequest,
  precision: VerifyPrecision,
  judgement: RunsJudgement,
  runs: SampleRuns,
  { reference, candidate }: { readonly reference: ReferenceRun; readonly candidate: SideRun },
): Promise<ReadonlyMap<string, string>> {
  const failed = failedOutputs(judgement);
  const doubts = new Map<string, string>();
  if (failed.length === 0) return doubts;
  const random = randomOutputs(request.reference, candidate.seedsRepeat);
  const unexplained = failed.filter(({ name }) => {
    const node = random.get(name);
    if (node !== undefined) doubts.set(name, `${name} depends on the random numbers that ${node} draws.`);
    return node === undefined;
  });
  if (unexplained.length === 0) return doubts;
  const last = Math.max(...unexplained.map(({ sample }) => sample));
  // All samples before it too: a generator with a seed goes on from run to run.
  const again = await runs.referenceAgain(reference, last + 1);
  for (const { name, sample } of unexplained) {
    const bindings = reference.bindings.filter((binding) => binding.name === name);
    const run = (outputs: readonly NamedTensors[]) => ({
      bindings,
      outputs: outputs.slice(sample, sample + 1),
    });
    const itself = judgeRuns(request, precision, run(reference.outputs), run(again));
    if (failedOutputs(itself).length > 0)
      doubts.set(
        name,
        `${name}: the reference differs from itself in a second run on sample ${sample}, so it cannot judge the candidate.`,
      );
  }
  return doubts;
}

/** A reference judges others only where it passes itself: the first samples run once more. Throws TF_BISECT_REFERENCE, with `model` as its name, and what running throws. */
export async function assertRepeats(
  request: VerifyRequest,
  precision: VerifyPrecision,
  runs: SampleRuns,
  reference: ReferenceRun,
  samples: number,
  model = request.reference,
): Promise<void> {
  const again = await runs.referenceAgain(reference, samples);
  const first = { ...reference, outputs: reference.outputs.slice(0, samples) };
  const judgement = judgeRuns(request, precision, first, { ...reference, outputs: again });
  const [failed] = failedOutputs(judgement);
  if (failed === undefined) return;
  const doubts = await unrepeatable(request, precision, judgement, runs, {
    reference: first,
    candidate: first,
  });
  const [why = ''] = reasonsOf(judgement);
  throw cannotJudge(
    model,
    failed.name,
    doubts.get(failed.name) ?? `its output ${failed.name} differs in a second run. ${why}`,
  );
}

/** Where every output that failed depends on random numbers, no candidate can pass or fail. */
export function assertDecides(
  reference: string,
  failed: readonly { readonly name: string }[],
  doubts: ReadonlyMap<string, string>,
): void {
  const [first] = failed;
  const doubt = first && doubts.get(first.name);
  if (doubt === undefined || failed.some(({ name }) => !doubts.has(name))) return;
  throw cannotJudge(reference, first?.name, doubt);
}

const cannotJudge = (reference: string, tensor: string | undefined, doubt: string) =>
  new TrtforgeError('TF_BISECT_REFERENCE', `${reference} cannot judge a candidate: ${doubt}`, {
    remedy: 'Pass a model that repeats: replace nodes that draw random numbers by constants.',
    details: { tensor },
  });

/** Why outputs failed. */
export const reasonsOf = ({ judged, broken }: RunsJudgement): readonly string[] => [
  ...broken.map(({ reason }) => reason),
  ...judged.filter(({ output }) => output.outcome === 'fail').flatMap(({ output }) => output.reasons),
];
