import type { Kind } from './kind.js';
import { classifier, detector, endToEndDetector, heatMap, quantizedNetwork } from './vision-kinds.js';

/** Every kind of network of the mutation suite. */
export const kinds: readonly Kind[] = [detector, endToEndDetector, classifier, heatMap, quantizedNetwork];
