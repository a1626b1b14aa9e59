import * as is from '../../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { openOptions } from '../../../engines/runtime/back-end.js';
import { engineOptions } from '../../../engines/runtime/tensorrt/options.js';
import { TrtforgeError } from '../../../errors.js';

/** Options of the recording. */
const signalOptions = {
  chunks: needed(is.whole(1, 10_000_000), {
    flags: '--chunks <count>',
    describe: 'chunks to record',
    default: 50,
  }),
  seed: needed(is.whole(0), {
    flags: '--seed <number>',
    describe: 'seed of the signal; the same seed makes the same signal everywhere',
    default: 0,
  }),
  batch: needed(is.whole(1), {
    flags: '--batch <count>',
    describe: 'streams in one batch',
    parse: is.whole(1, 65_536).parse,
    default: 1,
  }),
};

export const recordOptions = {
  /** ONNX model (ONNX Runtime on the CPU, in float32) or engine. */
  file: needed(is.text),
  output: needed(is.text, {
    flags: '-o, --output <file>',
    describe: 'the recorded stream, file.jsonl',
    required: '-o ref.jsonl',
    writes: true,
  }),
  /** Default: drafted from the model's names. */
  contract: optional(is.text, {
    flags: '--contract <file>',
    describe: 'contract of state and chunk sizes (default: drafted from the names of the model)',
  }),
  /** Default: the contract's. */
  schedule: optional(is.list<number>(), {
    flags: '--schedule <frames>',
    describe: 'frames of the first chunk and of the later ones: 41,57 (default: from the contract)',
    parse: parseSchedule,
  }),
  ...signalOptions,
  threads: openOptions.threads,
  device: openOptions.device,
  ...engineOptions,
};

export interface RecordRequest extends OptionsOf<typeof recordOptions> {}

function parseSchedule(value: string): readonly number[] {
  const sizes = value.split(',').map((part) => part.trim());
  if (sizes.every((size) => /^[1-9]\d{0,8}$/.test(size))) return sizes.map(Number);
  throw new TrtforgeError('TF_USAGE', `"${value}" is not a valid schedule.`, {
    remedy: 'Write the frames of the first chunk and of the later ones: 41,57.',
  });
}
