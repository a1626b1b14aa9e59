import { join } from 'node:path';
import { defineCommand } from '../../../cli/command.js';
import { option, text } from '../../../cli/option.js';
import { integer } from '../../../cli/values.js';
import { storeOptions as stores } from '../../../engines/store/open-stores.js';
import { trustOptions } from '../../../engines/store/trust.js';
import { TrtforgeError } from '../../../errors.js';
import type { TritonExport } from '../export/export-models.js';

export const command = defineCommand({
  arguments: [
    {
      name: 'ENGINES',
      describe: 'of one model: files, parts of names in the store (resnet*fp16), starts of identities',
      many: true,
    },
  ],
  examples: [
    'trtforge triton export resnet50.engine -o models --delay 500us',
    'trtforge triton export resnet50_fp16 -o models --name resnet50 --instances 2',
    'trtforge triton export encoder.engine -o models --contract encoder.contract.json',
    'trtforge triton export encoder.engine predictor.engine joint.engine -o models --bundle model_meta.json',
  ],
  options: {
    output: text({
      flags: '-o, --output <folder>',
      describe: 'the model repository; a server may be polling it',
      required: '-o models',
      writes: true,
    }),
    name: text({
      flags: '--name <name>',
      describe: "the model's name, of a bundle the start of each (default: that of the passport)",
    }),
    version: option({
      flags: '--version <number>',
      describe: 'write this version and serve it alone (default: the next; Triton serves the latest)',
      parse: integer(1),
    }),
    instances: option({
      flags: '--instances <count>',
      describe: 'execution contexts on each GPU',
      parse: integer(1),
      default: 1,
    }),
    delay: option({
      flags: '--delay <time>',
      describe: 'how long a request waits for others of its batch: 500us, 2ms (default: not at all)',
      parse: microseconds,
    }),
    contract: text({
      flags: '--contract <file>',
      describe: 'the states of a streaming model (default: those of the known answer)',
    }),
    bundle: text({
      flags: '--bundle <meta>',
      describe: 'a model_meta.json: encoder, predictor and joint network become three models and a client',
    }),
    gpu: text({
      flags: '--gpu <name>',
      describe: 'of several engines of one capability, the one built on this GPU',
    }),
    labels: text({
      flags: '--labels <file>',
      describe: 'names of classes (default: id2label of the config.json beside the engine)',
    }),
    store: stores.store,
    ...trustOptions,
  },
  schema: async () => (await import('../export/export-models.js')).tritonExportSchema,
  run: async (engines, options, context): Promise<TritonExport> => {
    const { exportModels } = await import('../export/export-models.js');
    const { requireSignature, trustKeys, store, ...rest } = options;
    const trust = { requireSignature: requireSignature || undefined, trustKeys };
    return exportModels({ engines, store, ...rest, ...trust, force: context.force }, context);
  },
  render: (result: TritonExport, { line, colors }) => {
    for (const { name, version, maxBatchSize, plans, states } of result.models) {
      const batch = maxBatchSize === 0 ? 'no batching' : `batch up to ${maxBatchSize}`;
      const kept = states.length === 0 ? '' : `, states: ${states.map(({ input }) => input).join(', ')}`;
      line(`${colors.bold(name)} version ${version}  ${batch}${kept}`);
      for (const { capability, path } of plans) line(`  ${capability}  ${path}`);
    }
    for (const file of result.client) line(`client  ${join(result.repository, file)}`);
    for (const warning of result.warnings) line(`${colors.yellow('warning')} ${warning}`);
    line(
      `${colors.dim('Next:')} tritonserver --model-repository=${result.repository} --disable-auto-complete-config`,
    );
  },
});

function microseconds(given: string): number {
  const [, number, unit] = /^(\d+)(us|ms)$/.exec(given.trim()) ?? [];
  const value = Number(number) * (unit === 'ms' ? 1000 : 1);
  if (Number.isSafeInteger(value)) return value;
  throw new TrtforgeError('TF_USAGE', `"${given}" is not a time.`, { remedy: 'Write 500us or 2ms.' });
}
