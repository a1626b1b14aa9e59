import { namesOf, type OptionValues } from '../../base/options/option.js';
import { formatBytes } from '../../base/text/quantity.js';
import type { LayersResult } from '../../engines/layers/result.js';
import { stripForeignHeader } from '../../engines/plan/header.js';
import type { EnginesInspected, StrippedPlan } from '../../engines/plan/inspect.js';
import { openOptions } from '../../engines/runtime/back-end.js';
import { enginesOptions, loadOptions } from '../../engines/runtime/tensorrt/options.js';
import { TrtforgeError } from '../../errors.js';
import { type CommandContext, defineCommand } from '../command.js';
import { flag, text } from '../option.js';
import { renderEngines } from './engine-text.js';
import { renderDiff, renderLayers } from './layers-text.js';

const engineArgument = {
  name: 'ENGINE',
  describe: 'a TensorRT plan: .engine, .plan, .trt; or the ONNX file around one (EPContext)',
};

const device = {
  ...openOptions.device,
  describe: 'which visible GPU loads the engine (default: 0)',
};

export const inspect = defineCommand({
  examples: [
    'trtforge engine inspect model.engine',
    'trtforge engine inspect model.engine encoder.engine',
    'trtforge engine inspect model.engine encoder.engine --memory',
  ],
  arguments: [{ ...engineArgument, name: 'ENGINES', many: true }],
  options: {
    memory: flag({
      flags: '--memory',
      describe: 'load the engines: what their activations need separately, and in one activation pool',
    }),
    device,
    ...enginesOptions,
  },
  schema: async () => (await import('../../engines/plan/inspect.js')).enginesInspectedSchema,
  run: async (files, { memory, ...options }, context): Promise<EnginesInspected> => {
    if (!memory) rejectUnloaded(options);
    const { inspectEngine } = await import('../../engines/plan/inspect.js');
    const { findToolchains } = await import('../../tensorrt/toolchain/find.js');
    const toolchains = await findToolchains(context.environment);
    const engines = await Promise.all(files.map((file) => inspectEngine(file, toolchains, context)));
    const isOdd = engines.some(({ findings }) => findings.some(({ severity }) => severity === 'error'));
    return {
      schema: 'trtforge.engine-inspect/2',
      engines,
      ...(memory ? { memory: await memoryOf(files, options, context) } : {}),
      exitCode: isOdd ? 1 : 0,
    };
  },
  render: renderEngines,
});

/** Nothing is loaded without `--memory`. Throws TF_USAGE for options of loading. */
function rejectUnloaded(options: LayersOptions): void {
  const specs = { device, ...enginesOptions };
  const idle = namesOf(specs).find((name) => {
    const value = options[name];
    return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
  });
  if (idle === undefined) return;
  const [flag] = specs[idle].flags.split(' ');
  throw new TrtforgeError('TF_USAGE', `${flag} has no effect: \`engine inspect\` loads nothing.`, {
    remedy: `Remove ${flag}, or add --memory, which loads the engines.`,
    details: { option: flag },
  });
}

async function memoryOf(
  files: readonly string[],
  options: LayersOptions,
  context: CommandContext,
): Promise<EnginesInspected['memory']> {
  const activationBytes: number[] = [];
  let gpu = '';
  // One after the other: all at once may not fit.
  for (const file of files) {
    const { layersOfEngine } = await import('../../engines/layers/engine-layers.js');
    const { loaded } = await layersOfEngine(file, { ...context, ...options });
    activationBytes.push(loaded?.deviceMemoryBytes ?? 0);
    gpu = loaded?.gpu.name ?? gpu;
  }
  const separateBytes = activationBytes.reduce((sum, bytes) => sum + bytes, 0);
  return { gpu, activationBytes, separateBytes, sharedBytes: Math.max(...activationBytes) };
}

export const stripHeader = defineCommand({
  examples: ['trtforge engine strip-header yolo.engine -o yolo.plan'],
  arguments: [engineArgument],
  options: {
    output: text({
      flags: '-o, --output <file>',
      describe: 'where the plan goes without what an exporter put in front of it',
      writes: ['a TensorRT plan'],
      required: '-o model.plan',
    }),
  },
  schema: async () => (await import('../../engines/plan/inspect.js')).strippedPlanSchema,
  run: async ([file = ''], { output }): Promise<StrippedPlan> => ({
    schema: 'trtforge.engine-strip-header/1',
    file,
    ...stripForeignHeader(file, output),
  }),
  render: ({ path, bytes }, { line, colors }) => line(`${colors.bold(path)}  ${formatBytes(bytes)}`),
});

type LayersOptions = OptionValues<{ readonly device: typeof device } & typeof enginesOptions> & {
  readonly identity?: string | undefined;
};

export const layers = defineCommand({
  examples: [
    'trtforge engine layers model.engine',
    'trtforge engine layers model.engine --from layers.json',
    'trtforge engine layers layers.json',
  ],
  arguments: [{ name: 'ENGINE', describe: 'an engine, which its GPU loads; or a .json file of its layers' }],
  options: {
    from: text({
      flags: '--from <json>',
      describe:
        'take the layers from this file, checked against the engine: trtexec --exportLayerInfo, or `engine layers --json` of another machine',
    }),
    device,
    ...loadOptions,
  },
  schema: async () => (await import('../../engines/layers/result.js')).layersResultSchema,
  run: ([file = ''], options, context) => readLayers(file, options.from, options, context),
  render: renderLayers,
});

export const diff = defineCommand({
  examples: [
    'trtforge engine diff fp32.engine fp16.engine',
    'trtforge engine diff layers-8.6.json layers-10.6.json',
  ],
  arguments: [
    { name: 'A', describe: 'an engine, or a .json file of layers' },
    { name: 'B', describe: 'another' },
  ],
  options: {
    from: text({
      flags: '--from <json>',
      describe: 'take the layers of A from this file, checked against the engine',
    }),
    device,
    ...enginesOptions,
  },
  schema: async () => (await import('../../engines/layers/result.js')).engineDiffSchema,
  run: async ([a = '', b = ''], options, context) => {
    const one = await readLayers(a, options.from, options, context);
    // A comparison lists no findings; that its layers may be of another engine is to be known all the same.
    for (const { code, message } of one.findings)
      if (isAboutOrigin(code))
        context.emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
    const { diffEngines } = await import('../../engines/layers/diff.js');
    return diffEngines(one, await readLayers(b, undefined, options, context));
  },
  render: renderDiff,
});

const isAboutOrigin = (code: string) => code === 'layers-unchecked' || code === 'layers-doubtful';

async function readLayers(
  file: string,
  from: string | undefined,
  options: LayersOptions,
  context: CommandContext,
): Promise<LayersResult> {
  const { layersOf } = await import('../../engines/layers/engine-layers.js');
  return layersOf(file, { ...context, ...options, from });
}
