import { sha256 } from '../../base/files/digest.js';
import { compactIndex, isCompactReference } from '../../formats/reference/compact.js';
import { recordedInputs } from '../../formats/reference/jsonl.js';
import { openReference } from '../../formats/reference/open.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { canonicalJson } from '../identity/canonical-json.js';
import { areInputs, type CalibrationSample, type SampleSource } from './sample-source.js';

/** Whether a path names a recorded stream: a JSONL file, or the folder of a compact reference. */
export const isReference = (path: string): boolean => /\.jsonl$/i.test(path) || isCompactReference(path);

/** A recorded stream: each chunk is a sample, with the states that the model had made of the chunks before. */
export const referenceSamples = (path: string): SampleSource => ({
  total: undefined,
  digests: () => Array.from(inputsIn(path), digestOf),
  isFor: (inputs) => {
    for (const first of inputsIn(path)) return areInputs([...first.keys()], inputs);
    return false;
  },
  async *samples(): AsyncIterable<CalibrationSample> {
    using reference = openReference(path);
    for await (const { inputs, meta } of reference.chunks({ select: (side) => side === 'inputs' }))
      yield { origin: `chunk ${meta.line} of ${path}`, inputs };
  },
});

const inputsIn = (path: string) => recordedInputs(isCompactReference(path) ? compactIndex(path) : path);

/** As of arrays with these names, whatever form the reference has. */
const digestOf = (inputs: NamedTensors): string =>
  sha256(
    canonicalJson(
      Object.fromEntries(
        [...inputs].map(([name, { dtype, shape, bytes }]) => [
          name,
          { dtype, shape: [...shape], sha256: sha256(bytes) },
        ]),
      ),
    ),
  );
