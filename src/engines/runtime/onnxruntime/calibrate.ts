import type { ObserveRanges } from '../../../formats/precision/options.js';
import { readNpz } from '../../../formats/tensor/npz.js';

/** Ranges of a model's activations over samples (npz files), on ONNX Runtime, which is loaded only now. Throws what reading, opening and running throw. */
export const observeOnOrt: ObserveRanges = async (model, samples, { emit, signal }) => {
  const [{ observeRanges }, { openOrtSession }] = await Promise.all([
    import('../../../formats/precision/calibration.js'),
    import('./ort-session.js'),
  ]);
  const context = { emit, signal };
  const read = samples.map((path) => readNpz(path));
  return observeRanges(
    model,
    read,
    (path) => openOrtSession(path, { ...context, givenModel: model }),
    context,
  );
};
