import { z } from 'zod';
import { LARGEST_DOCUMENT, readText } from '../../../base/files/files.js';
import { parseJson } from '../../../base/files/json.js';
import { publishFile } from '../../../base/files/publish.js';
import { faultText } from '../../../base/text/schema-error.js';
import { TrtforgeError } from '../../../errors.js';
import { CALIBRATION_REVISION } from './method.js';
import type { CalibratedRanges, TensorRange } from './ranges.js';
import { assertEntries, parseTable, tableText } from './table.js';

/** The origin of ranges: they are used again only where all of it is the same. */
export interface CalibrationIdentity {
  /** SHA-256 of the samples and of how they are prepared. */
  readonly data: string;
  /** As `methodText` writes it. */
  readonly method: string;
  /** The type that the ranges are for. */
  readonly dtype: string;
  /** SHA-256 of the FP32 model. */
  readonly model: string;
}

/** 32-bit floats, little-endian, in base64: a model has hundreds of tensors of thousands of channels. */
const packed = z.base64().refine((text) => Buffer.from(text, 'base64').length % 4 === 0, 'not whole floats');
const pack = (values: Float32Array): string =>
  Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('base64');
const unpack = (text: string): Float32Array =>
  new Float32Array(Uint8Array.from(Buffer.from(text, 'base64')).buffer);

const SCHEMA = 'trtforge.calibration/1';

const cacheSchema = z.object({
  schema: z.literal(SCHEMA),
  identity: z.object({
    data: z.string(),
    method: z.string(),
    dtype: z.string(),
    model: z.string(),
    revision: z.number(),
  }),
  ranges: z.record(
    z.string(),
    z.object({
      min: z.number().max(0),
      max: z.number().min(0),
      amax: z.number().min(0),
      channels: z.object({ mean: packed, variance: packed }).optional(),
    }),
  ),
});

/** Ranges from a file. */
export interface CachedRanges {
  readonly ranges: CalibratedRanges;
  /** The origin that a cache of trtforge states; null for a table, which states none. */
  readonly identity: (CalibrationIdentity & { readonly revision: number }) | null;
}

/**
 * Ranges from a cache that trtforge wrote, or from a table of TensorRT or ONNX Runtime, by the first bytes. Throws TF_CALIBRATION_INVALID for a file that
 * is neither, that is damaged, or that states another value of what is wanted (the message names the field); TF_FILE_….
 */
export function readCalibration(path: string, wanted: Partial<CalibrationIdentity> = {}): CachedRanges {
  const text = readText(path, LARGEST_DOCUMENT, 'TF_CALIBRATION_INVALID');
  if (!/^\s*\{/.test(text)) return { identity: null, ranges: parseTable(path, text) };
  const invalid = (why: string, cause?: unknown) =>
    new TrtforgeError('TF_CALIBRATION_INVALID', `${path} cannot be read as a calibration cache: ${why}.`, {
      cause,
      remedy: 'Remove it: the next run with --calibration writes it again.',
    });
  const content = parseJson(text, LARGEST_DOCUMENT, invalid);
  if ((content as { schema?: unknown } | null)?.schema !== SCHEMA)
    throw new TrtforgeError(
      'TF_CALIBRATION_INVALID',
      `${path} is JSON of another program: it has no "schema": "${SCHEMA}".`,
      {
        remedy:
          'Pass another --calibration-cache: JSON that trtforge wrote, a table of TensorRT, or calibration.cache of ONNX Runtime (not calibration.json).',
      },
    );
  assertEntries(path, Object.keys((content as { ranges?: object }).ranges ?? {}).length);
  const parsed = cacheSchema.safeParse(content);
  if (!parsed.success) throw invalid(faultText(parsed.error));
  const { identity } = parsed.data;
  assertOrigin(path, identity, wanted);
  const ranges = Object.entries(parsed.data.ranges).map(
    ([name, { channels, ...range }]): [string, TensorRange] => [
      name,
      channels === undefined
        ? range
        : { ...range, channels: { mean: unpack(channels.mean), variance: unpack(channels.variance) } },
    ],
  );
  return { identity, ranges: new Map(ranges) };
}

type Keyed = NonNullable<CachedRanges['identity']>;

/** Revision and method first: they decide how data are digested. */
const fields: Readonly<Record<keyof Keyed, string>> = {
  revision: 'the revision of the calibrators',
  method: 'the method',
  data: 'the calibration data',
  dtype: 'the type',
  model: 'the model',
};

/** Throws TF_CALIBRATION_INVALID, with the fields, for ranges that state another value of what is wanted. */
export function assertOrigin(path: string, cached: Keyed, origin: Partial<CalibrationIdentity>): void {
  // The same samples give other ranges by another revision; ranges without samples are what they are.
  const wanted: Partial<Keyed> =
    origin.data === undefined ? origin : { revision: CALIBRATION_REVISION, ...origin };
  const differing = (Object.keys(fields) as (keyof Keyed)[]).filter(
    (field) => wanted[field] !== undefined && cached[field] !== wanted[field],
  );
  const [first] = differing;
  if (first === undefined) return;
  throw new TrtforgeError(
    'TF_CALIBRATION_INVALID',
    `${path} was made with other values of ${differing.map((field) => fields[field]).join(' and ')}: ${first} is ${cached[first]} there and ${wanted[first]} here.`,
    {
      remedy: 'Pass another --calibration-cache, or remove the file to calibrate again.',
      details: { differing },
    },
  );
}

/** Writes ranges in one step: as a cache with its identity where the name ends in `.json`, else as TensorRT's table, which ModelOpt reads too. */
export function writeCalibration(
  path: string,
  identity: CalibrationIdentity,
  ranges: CalibratedRanges,
): void {
  if (!path.endsWith('.json')) {
    publishFile(path, tableText(ranges, identity.method));
    return;
  }
  const content: z.infer<typeof cacheSchema> = {
    schema: SCHEMA,
    identity: { ...identity, revision: CALIBRATION_REVISION },
    ranges: Object.fromEntries(
      [...ranges].map(([name, { channels, ...range }]) => [
        name,
        channels === undefined
          ? range
          : { ...range, channels: { mean: pack(channels.mean), variance: pack(channels.variance) } },
      ]),
    ),
  };
  publishFile(path, `${JSON.stringify(content, null, 2)}\n`);
}
