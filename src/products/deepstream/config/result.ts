import { z } from 'zod';

const findingSchema = z.strictObject({
  /** Stable; the table of `docs/deepstream-config.md` has each. */
  code: z.string(),
  severity: z.enum(['error', 'warning', 'info']),
  /** File and line of the configuration, or the file it is about. */
  where: z.string(),
  message: z.string(),
  remedy: z.string(),
});

export type CheckFinding = z.infer<typeof findingSchema>;

const scoresSchema = z.strictObject({
  /** The preprocessing, by the keys of nvinfer. */
  preprocessing: z.string(),
  /** The highest score of any class. */
  highest: z.number(),
  /** Candidates of a score of at least 0.25, before suppression. */
  candidates: z.int(),
});

/** The prediction of `deepstream check` for a configuration; nothing of DeepStream runs for it. */
export const deepstreamCheckSchema = z.strictObject({
  schema: z.literal('trtforge.deepstream-check/1'),
  config: z.string(),
  element: z.enum(['nvinfer', 'nvinferserver']),
  /** `builds`: an engine at this start, which the next one loads. `rebuilds`: one is named and not used, or built at every start. */
  outcome: z.enum(['loads', 'builds', 'rebuilds', 'fails']),
  /** Why, as a code. */
  reason: z.string(),
  message: z.string(),
  /** The engine file that will be written; null where none is, or it is not known. */
  writes: z.string().nullable(),
  engine: z.string().nullable(),
  model: z.string().nullable(),
  /** The target that the engine was compared with; null: not passed, so not compared. */
  target: z.strictObject({ tensorrt: z.string().nullable(), gpu: z.string().nullable() }),
  /** Of the image of `--image`, through the model in ONNX Runtime. */
  trial: z
    .strictObject({
      image: z.string(),
      asConfigured: scoresSchema,
      /** The best first. */
      alternatives: z.array(scoresSchema),
    })
    .nullable(),
  findings: z.array(findingSchema),
});

export interface DeepstreamCheck extends z.infer<typeof deepstreamCheckSchema> {}
