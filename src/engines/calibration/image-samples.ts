import { sha256, sha256OfFile } from '../../base/files/digest.js';
import { preprocessings } from '../../formats/images/preprocess.js';
import { canonicalJson } from '../identity/canonical-json.js';
import { preparedImages, preprocessingOf } from '../run/image-inputs.js';
import { type CalibrationSample, isFound, type SampleSource } from './sample-source.js';

/** Images as the evaluation prepares them: a name of `preprocessings`, and width and height where the model leaves them open. */
export interface ImagePreparation {
  readonly preprocess: string;
  /** Default: that of the preparation. */
  readonly imgsz?: number;
}

export function imageSamples(
  paths: readonly string[],
  { preprocess, imgsz }: ImagePreparation,
): SampleSource {
  const pixels = imgsz ?? preprocessings[preprocess]!.width;
  return {
    total: paths.length,
    digests: () =>
      paths.map((path) => sha256(canonicalJson({ image: sha256OfFile(path), preprocess, imgsz: pixels }))),
    isFor: (inputs) => isFound(() => preprocessingOf(inputs, preprocess, pixels)),
    async *samples(inputs): AsyncIterable<CalibrationSample> {
      let at = 0;
      const preprocessing = preprocessingOf(inputs, preprocess, pixels);
      for await (const image of preparedImages(inputs, paths, preprocessing))
        yield { origin: paths[at++]!, inputs: image.inputs };
    },
  };
}
