import type { SampleFile } from '../../engines/calibration/sample-source.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { pairOf } from '../predictions/prediction.js';
import { classNamesOf, Predictor } from '../predictions/predictor.js';
import type { Outputs } from './judge-runs.js';
import type { JudgedOutput } from './judged.js';
import type { VerifyRequest } from './request.js';
import { measure, type VerifyResult, type WorstSample } from './result.js';
import type { ReferenceRun } from './sample-runs.js';

const MOST_SHOWN = 12;

/**
 * The pictures or recordings of a comparison with the outputs of both sides decoded: those with the most decisions turned first, then those whose error has
 * the largest share of a limit. Undefined where no sample is such a file.
 */
export function worstSamples(
  { reference: model, data }: Pick<VerifyRequest, 'reference' | 'data'>,
  judged: readonly JudgedOutput[],
  reference: ReferenceRun,
  candidate: Outputs,
): VerifyResult['worstSamples'] {
  const { plan } = reference;
  const rows = reference.outputs.flatMap((_, sample) => {
    const [[, input] = []] = plan.tensors(sample);
    return plan.files(sample).map((file, row) => ({ sample, file, row, batch: input?.shape[0] ?? 1 }));
  });
  if (rows.length === 0) return undefined;
  const hints = { names: classNamesOf(model), preprocess: data?.preprocess };
  const decoded = ({ outputs }: Outputs) => {
    const predictor = new Predictor(hints);
    for (const { sample, file, row, batch } of rows)
      predictor.take(rowOf(outputs[sample]!, row, batch), file.picture);
    return predictor.finish().predictions;
  };
  const [theirs, ours] = [decoded(reference), decoded(candidate)];
  const all = rows.map(({ sample, file }, at): WorstSample => {
    const severities = judged.map((one) => one.severities.get(sample) ?? 0);
    return {
      sample,
      ...shownFile(file),
      share: measure(Math.max(0, ...severities)),
      ...pairOf(theirs[at] ?? null, ours[at] ?? null),
    };
  });
  const turned = (one: WorstSample) => one.lost + one.new;
  return all
    .sort((a, b) => turned(b) - turned(a) || order(Number(b.share), Number(a.share)))
    .slice(0, MOST_SHOWN);
}

/** Infinities are equal. */
const order = (a: number, b: number): number => (a === b ? 0 : a - b);

const shownFile = ({ path, sha256, picture }: SampleFile): Pick<WorstSample, 'file' | 'sha256' | 'size'> => ({
  ...{ file: path, sha256 },
  size: picture === undefined ? null : { width: picture.width, height: picture.height },
});

/** The outputs of one row of a batch. */
function rowOf(outputs: NamedTensors, row: number, batch: number): NamedTensors {
  if (batch === 1) return outputs;
  const sliced = ({ dtype, shape, bytes }: Tensor): Tensor => {
    const size = bytes.byteLength / batch;
    return { dtype, shape: [1, ...shape.slice(1)], bytes: bytes.slice(row * size, (row + 1) * size) };
  };
  const ofRows = [...outputs].filter(([, { shape }]) => shape[0] === batch);
  return new Map(ofRows.map(([name, tensor]) => [name, sliced(tensor)]));
}
