import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../base/options/option.js';
import { parseShapes, parseValueRange, shapesByName } from '../../base/options/readers.js';
import { openOptions } from '../runtime/back-end.js';

/** Where the inputs of a run come from. */
export type RunSource =
  | { readonly kind: 'tensor'; readonly name: string; readonly path: string }
  /** Every tensor of an npz archive, by name. */
  | { readonly kind: 'archive'; readonly path: string }
  /** Random values for every input that no file provides. */
  | { readonly kind: 'random' };

/** The user's options for inputs that are drawn. */
export const drawOptions = {
  /** Input name to dimensions (a profile's opt shapes do). */
  shapes: optional(is.map<readonly number[]>(), {
    flags: '--shapes <shapes>',
    group: 'Inputs',
    describe: 'shapes of inputs with open dimensions, as x:1x3x224x224',
    parse: parseShapes,
    repeat: true,
    make: shapesByName,
  }),
  /** Ranges that overrule the graph's; `name` null is for every input. */
  ranges: optional(is.list<ReturnType<typeof parseValueRange>>(), {
    flags: '--val-range <range>',
    group: 'Inputs',
    advanced: true,
    describe: 'range of random inputs: [0,1] for all or x:[0,1] for one (default: from the graph)',
    parse: parseValueRange,
    repeat: true,
  }),
};

/** The options of `runFile`, and its file. */
export const runOptions = {
  /** A plan or an ONNX model. */
  file: needed(is.text),
  sources: needed(is.list<RunSource>()),
  /** Default 0. */
  seed: optional(is.whole(0), {
    flags: '--seed <number>',
    group: 'Inputs',
    describe: 'seed of the random inputs',
    default: 0,
  }),
  /** A folder (one npy per output) or a file that ends in .npz; nothing is written without. */
  output: optional(is.text, {
    flags: '-o, --output <place>',
    describe:
      'where outputs go: a folder (one npy each), a file.npz, or a file.npy for one (default: only their statistics are printed)',
    writes: true,
  }),
  /** Default 1. */
  iterations: optional(is.whole(1, 10_000_000), {
    flags: '--iterations <count>',
    describe: 'how many times to run; outputs are of the last',
    default: 1,
  }),
  ...drawOptions,
  ...openOptions,
};

export interface RunRequest extends OptionsOf<typeof runOptions> {}
