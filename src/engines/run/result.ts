import { z } from 'zod';
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
