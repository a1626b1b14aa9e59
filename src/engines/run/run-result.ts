import { z } from 'zod';
import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../base/options/option.js';
import { parseShapes, parseValueRange, shapesByName } from '../../base/options/readers.js';
import { openOptions } from '../runtime/back-end.js';
import { ortFactsSchema } from '../runtime/onnxruntime/ort-facts.js';

const shape = z.array(z.int().nonnegative());

/** One input of a run, as results have it. */
export const describedInputSchema = z.object({
  name: z.string(),
  dtype: z.string(),
  shape: z.array(z.int().nonnegative()),
  /** A file, or what the random numbers are. */
  from: z.string(),
  /** Open axes of the model whose size was guessed; absent where there are none. */
  guessedAxes: z.array(z.int().nonnegative()).optional(),
});
export type DescribedInput = z.infer<typeof describedInputSchema>;

/** The result of `run`: which file ran on what, with which inputs, and what came out. */
export const runResultSchema = z.object({
  schema: z.literal('trtforge.run/1'),
  file: z.string(),
  kind: z.enum(['engine', 'model']),
  /** The back end that ran it: `TensorRT 10.6.0.26 (NVIDIA H200)`, `ONNX Runtime 1.30.0 (CPU)`. */
  backend: z.string(),
  /** Of a model: library, options and placement; absent for engines. */
  onnxRuntime: ortFactsSchema.optional(),
  /** Optimization profile that was used; null for a model. */
  profile: z.int().nonnegative().nullable(),
  /** null for a model. */
  cudaGraph: z
    .object({
      asked: z.enum(['auto', 'always', 'never']),
      /** Why runs went on without one. */
      fallbacks: z.array(z.string()),
    })
    .nullable(),
  /** Of an engine with weight streaming: bytes of these weights that stay on the GPU; absent for others. */
  weightBudgetBytes: z.number().optional(),
  seed: z.int().nonnegative(),
  inputs: z.array(describedInputSchema),
  outputs: z.array(
    z.object({
      name: z.string(),
      dtype: z.string(),
      shape,
      elements: z.int().nonnegative(),
      /** Of the finite elements; null where there is none. */
      min: z.number().nullable(),
      max: z.number().nullable(),
      mean: z.number().nullable(),
      nan: z.int().nonnegative(),
      infinite: z.int().nonnegative(),
      /** The npy file, or the npz that holds it; null where no output was requested. */
      file: z.string().nullable(),
    }),
  ),
  times: z.object({
    /** From the first look at the file to the first run. */
    openMs: z.number().nonnegative(),
    iterations: z.int().positive(),
    /** Host memory to host memory; of an engine in the process that runs it, of a model with the way to that process and back. */
    first: z.number().nonnegative(),
    /** Of all iterations but the first, which makes buffers; null when there was one. */
    rest: z
      .object({
        min: z.number().nonnegative(),
        median: z.number().nonnegative(),
        mean: z.number().nonnegative(),
        max: z.number().nonnegative(),
      })
      .nullable(),
  }),
  warnings: z.array(z.string()),
  /** The command line of this run; null where a program called the library. */
  repeat: z.string().nullable(),
});

export interface RunResult extends z.infer<typeof runResultSchema> {}

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
