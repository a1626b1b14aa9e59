import * as is from '../../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { storeOptions as stores } from '../../../engines/store/open-stores.js';
import { trustOptions } from '../../../engines/store/trust.js';
import { TrtforgeError } from '../../../errors.js';

export const exportOptions = {
  /** Of one model, or of a bundle: files, parts of names in the store, starts of identities. */
  engines: needed(is.list<string>()),
  /** The repository; a server may be polling it. */
  output: needed(is.text, {
    flags: '-o, --output <folder>',
    describe: 'the model repository; a server may be polling it',
    required: '-o models',
    writes: true,
  }),
  /** The model's name, of a bundle the start of each (default: that of the passport). */
  name: optional(is.text, {
    flags: '--name <name>',
    describe: "the model's name, of a bundle the start of each (default: that of the passport)",
  }),
  /** Write this version and serve it alone (default: the next; Triton serves the latest). */
  version: optional(is.whole(1), {
    flags: '--version <number>',
    describe: 'write this version and serve it alone (default: the next; Triton serves the latest)',
  }),
  /** Execution contexts on each GPU (default: 1). */
  instances: optional(is.whole(1), {
    flags: '--instances <count>',
    describe: 'execution contexts on each GPU',
    default: 1,
  }),
  /** Time that a request waits for others of its batch, microseconds (default: none). */
  delay: optional(is.whole(0), {
    flags: '--delay <time>',
    describe: 'how long a request waits for others of its batch: 500us, 2ms (default: not at all)',
    parse: microseconds,
  }),
  /** A contract file: the states of a streaming model (default: those of the known answer). */
  contract: optional(is.text, {
    flags: '--contract <file>',
    describe: 'the states of a streaming model (default: those of the known answer)',
  }),
  /** A model_meta.json: encoder, predictor and joint network become three models and a client. */
  bundle: optional(is.text, {
    flags: '--bundle <meta>',
    describe: 'a model_meta.json: encoder, predictor and joint network become three models and a client',
  }),
  /** Of several engines of one capability, the one built on this GPU. */
  gpu: optional(is.text, {
    flags: '--gpu <name>',
    describe: 'of several engines of one capability, the one built on this GPU',
  }),
  /** A file of names of classes (default: id2label of the config.json beside the engine). */
  labels: optional(is.text, {
    flags: '--labels <file>',
    describe: 'names of classes (default: id2label of the config.json beside the engine)',
  }),
  /** The engine store's folder (default: `$TENSORRT_CACHE_DIR` or `~/.cache/trtforge/engines`). */
  store: { ...stores.store, kind: is.text },
  ...trustOptions,
  /** Replace a version that is there and a model of others, and make what Triton cannot serve a warning. */
  force: optional(is.flag),
};

export interface TritonExportRequest extends OptionsOf<typeof exportOptions> {}

function microseconds(given: string): number {
  const [, number, unit] = /^(\d+)(us|ms)$/.exec(given.trim()) ?? [];
  const value = Number(number) * (unit === 'ms' ? 1000 : 1);
  if (Number.isSafeInteger(value)) return value;
  throw new TrtforgeError('TF_USAGE', `"${given}" is not a time.`, { remedy: 'Write 500us or 2ms.' });
}
