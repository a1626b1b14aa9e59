import { z } from 'zod';

export const tritonCheckSchema = z.strictObject({
  schema: z.literal('trtforge.triton-check/1'),
  repository: z.string(),
  /** fail: there is a finding of severity error. */
  outcome: z.enum(['pass', 'fail']),
  models: z.array(
    z.strictObject({
      name: z.string(),
      /** The back end that serves it: `tensorrt`, `ensemble`, or another one, whose files are not read; null where nothing states it. */
      backend: z.string().nullable(),
      /** Those that the version policy loads. */
      versions: z.array(z.string()),
      plans: z.array(
        z.strictObject({
          /** `det/1/sm_89.plan` */
          file: z.string(),
          /** Its key of cc_model_filenames: `8.9`; null: for every GPU. */
          capability: z.string().nullable(),
          /** TensorRT that built it, the build number modulo 256; null where it is not a plan of TensorRT, or one before 8.6. */
          tensorrt: z.string().nullable(),
          /** Of the passport; null without one. */
          identity: z.string().nullable(),
        }),
      ),
    }),
  ),
  container: z.strictObject({
    /** The TensorRT that the server must have; null where no plan states it. */
    tensorrt: z.string().nullable(),
    /** Containers whose TensorRT a page states; empty: unknown. */
    tags: z.array(
      z.strictObject({
        /** `nvcr.io/nvidia/tritonserver`, or NVIDIA's container `tensorrt` of the same month, which Triton's follows in most months. */
        image: z.enum(['tritonserver', 'tensorrt']),
        tag: z.string(),
        tensorrt: z.string(),
        source: z.string(),
        /** When the source was written: `2024-06-25` or `2020-10`. */
        date: z.string(),
      }),
    ),
    /** The command that prints the TensorRT of a container, inside of it. */
    command: z.string(),
  }),
  findings: z.array(
    z.strictObject({
      code: z.string(),
      severity: z.enum(['error', 'warning', 'info']),
      /** `det/config.pbtxt: instance_group[0].profile` */
      where: z.string(),
      message: z.string(),
      remedy: z.string(),
    }),
  ),
});

export interface TritonCheck extends z.infer<typeof tritonCheckSchema> {}
