import type { Kind } from './kind.js';
import { labelMap, sceneDetector, sceneLabels, segmenter, suppressingDetector } from './scene-kinds.js';
import {
  branchByRate,
  embeddingEncoder,
  maskByAdd,
  maskByWhere,
  oneHotByEqual,
  recurrent,
  waveform,
} from './sequence-kinds.js';
import { phonesOfInt16, phonesOfSound } from './speech-kinds.js';
import { tokenLabels } from './text-kinds.js';
import { classifier, detector, endToEndDetector, heatMap, quantizedNetwork } from './vision-kinds.js';

/** Every kind of network of the mutation suite. */
export const kinds: readonly Kind[] = [
  detector,
  endToEndDetector,
  classifier,
  heatMap,
  embeddingEncoder,
  oneHotByEqual,
  branchByRate,
  recurrent,
  waveform,
  maskByAdd,
  maskByWhere,
  quantizedNetwork,
  sceneDetector,
  suppressingDetector,
  sceneLabels,
  segmenter,
  labelMap,
  tokenLabels,
  phonesOfSound,
  phonesOfInt16,
];
