import { z } from 'zod';
import { LARGEST_DOCUMENT, readText } from '../../../base/files/files.js';
import { faultText } from '../../../base/text/schema-error.js';
import { type ErrorCode, TrtforgeError } from '../../../errors.js';

/** What is read of a `trtforge.contract/1`; the whole of it is checked by `stream check`. */
const contractSchema = z.looseObject({
  schema: z.literal('trtforge.contract/1'),
  inputs: z.array(
    z.looseObject({
      name: z.string(),
      shape: z.array(z.union([z.number(), z.string(), z.null()])).nullish(),
    }),
  ),
  state: z
    .array(z.looseObject({ input: z.string(), output: z.string(), initial: z.number().default(0) }))
    .default([]),
});
export type StateContract = z.infer<typeof contractSchema>;

const frames = z
  .union([z.int(), z.tuple([z.int(), z.int()])])
  .transform((both) => (typeof both === 'number' ? [both, both] : both));

/** What a client needs of a bundle's `model_meta.json`. */
const metaSchema = z.looseObject({
  model_name: z.string().nullish(),
  labels: z.array(z.string()).nullish(),
  blank_id: z.int().nonnegative().nullish(),
  duration_values: z.array(z.int().nonnegative()).nullish(),
  streaming: z
    .looseObject({ chunk_size: frames, shift_size: frames, pre_encode_cache_size: frames.default([0, 0]) })
    .nullish(),
});
export type BundleMeta = z.infer<typeof metaSchema>;

/** Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_CONTRACT_INVALID. */
export const readContract = (path: string): StateContract =>
  read(path, contractSchema, 'TF_CONTRACT_INVALID', {
    remedy:
      'Pass a trtforge.contract/1 file. For another form, draft one from the model: trtforge stream draft MODEL.onnx -o FILE',
  });

/** Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_BUNDLE_META_INVALID. */
export const readBundleMeta = (path: string): BundleMeta => read(path, metaSchema, 'TF_BUNDLE_META_INVALID');

function read<T>(
  path: string,
  schema: z.ZodType<T>,
  code: ErrorCode,
  more: { readonly remedy?: string } = {},
): T {
  const text = readText(path, LARGEST_DOCUMENT, code);
  const invalid = (why: string) => new TrtforgeError(code, `${path} cannot be used: ${why}.`, more);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw invalid('it is not JSON');
  }
  const parsed = schema.safeParse(content);
  if (parsed.success) return parsed.data;
  throw invalid(faultText(parsed.error));
}
