import { existsSync } from 'node:fs';
import type { EngineDiff, LayersResult } from '../../engines/layers/result-schema.js';
import type { PlanFacts } from '../../engines/plan/facts.js';
import { isPlanFile } from '../../engines/plan/header.js';
import { TrtforgeError } from '../../errors.js';
import { modelFacts } from '../../formats/onnx/inspect.js';
import { openModel } from '../../formats/onnx/model.js';
import type { ModelFacts } from '../../formats/onnx/model-facts.js';
import { deepstreamSummary } from '../../products/deepstream/model-summary.js';
import { type CommandContext, defineCommand } from '../command.js';
import { choice, flag, type OptionValues, option, text } from '../option.js';
import { engineOptions, engineOptionsGiven, engineWishes } from '../options/engine.js';
import { integer } from '../values.js';
import { renderModel, renderPlan } from './inspect-text.js';
import { renderDiff, renderLayers } from './layers-text.js';

type InspectResult = (ModelFacts | PlanFacts | LayersResult | EngineDiff) & {
  readonly format: 'text' | 'deepstream';
};

const options = {
  format: choice({
    flags: '--format <format>',
    describe: 'text for people, or the summary that DeepStream scripts read with grep',
    choices: ['text', 'deepstream'],
    default: 'text',
  }),
  checkWeights: flag({
    flags: '--check-weights',
    describe: 'read every weight and report NaN, infinities and values outside FP16',
  }),
  stripHeader: text({
    flags: '--strip-header <out>',
    describe: 'write the plan to OUT without the header an exporter put in front of it',
    writes: ['a TensorRT plan'],
  }),
  layers: flag({
    flags: '--layers',
    describe:
      'load the engine and list its layers: tactics, types, layouts, memory, ONNX nodes (needs its GPU)',
  }),
  layersFrom: text({
    flags: '--layers-from <json>',
    describe:
      'take the layers from a file instead, held against the engine: trtexec --exportLayerInfo, or --layers --json of another machine',
  }),
  against: text({
    flags: '--against <engine>',
    describe: 'compare the layers with those of another engine, or of another file of layers',
  }),
  device: option({
    flags: '--device <number>',
    describe: 'which of the visible GPUs loads the engine (default: 0)',
    parse: integer(0),
  }),
  ...engineOptions,
};
type InspectOptions = OptionValues<typeof options>;

export const command = defineCommand({
  name: 'inspect',
  summary: 'what is in an ONNX model, a TensorRT plan, or the layers of an engine',
  examples: [
    'trtforge inspect model.onnx',
    'trtforge inspect model.onnx --json | jq .inputs',
    'trtforge inspect model.onnx --check-weights',
    'trtforge inspect yolo.engine --strip-header yolo.plan',
    'trtforge inspect model.engine --layers',
    'trtforge inspect fp32.engine --against fp16.engine',
    'trtforge inspect layers-8.6.json --against layers-10.6.json',
  ],
  arguments: [
    {
      name: 'FILE',
      describe: 'an .onnx model, an .engine, .plan or .trt file, or a .json file of layer information',
    },
  ],
  options,
  run: async ([file = ''], options, context): Promise<InspectResult> => {
    const { format } = options;
    if (wantsLayers(file, options)) return { ...(await inspectLayers(file, options, context)), format };
    refuseWithoutLoading(options);
    if (isPlanFile(file)) {
      if (format === 'deepstream' || options.checkWeights) {
        throw wrongKind(`${file} is a plan; --format deepstream and --check-weights are for ONNX models.`);
      }
      return { ...(await inspectPlan(file, options.stripHeader, context)), format };
    }
    if (options.stripHeader !== undefined) {
      throw wrongKind(`${file} is not a plan; --strip-header is for plans.`);
    }
    return { ...(await inspectOnnx(file, options.checkWeights, context)), format };
  },
  render: (result, output) => {
    if (result.kind === 'plan') renderPlan(result, output);
    else if (result.kind === 'layers') renderLayers(result, output);
    else if (result.kind === 'diff') renderDiff(result, output);
    else if (result.format === 'deepstream') for (const line of deepstreamSummary(result)) output.line(line);
    else renderModel(result, output);
  },
});

const isAboutOrigin = (code: string) => code === 'layers-unchecked' || code === 'layers-doubtful';

const isLayersFile = (file: string) => file.toLowerCase().endsWith('.json');

const wantsLayers = (file: string, { layers, layersFrom, against }: InspectOptions): boolean =>
  layers || layersFrom !== undefined || against !== undefined || isLayersFile(file);

/** How an engine is loaded means nothing where none is. */
function refuseWithoutLoading(options: InspectOptions): void {
  const [wrong] = [...(options.device === undefined ? [] : ['--device']), ...engineOptionsGiven(options)];
  if (wrong !== undefined) throw wrongKind(`${wrong} is for loading an engine, which --layers does.`);
}

async function inspectLayers(
  file: string,
  options: InspectOptions,
  context: CommandContext,
): Promise<LayersResult | EngineDiff> {
  const { layersFrom, against } = options;
  if (options.format === 'deepstream' || options.checkWeights || options.stripHeader !== undefined) {
    throw wrongKind('--layers, --layers-from and --against go with none of the other views.');
  }
  const asked = [...(layersFrom === undefined ? [file] : []), ...(against === undefined ? [] : [against])];
  if (asked.every(isLayersFile)) refuseWithoutLoading(options);
  const one = await layersOf(file, layersFrom, options, context);
  if (against === undefined) return one;
  // A comparison lists no findings; that its layers may be of another engine is to be known all the same.
  for (const { code, message } of one.findings)
    if (isAboutOrigin(code)) context.emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
  const { diffEngines } = await import('../../engines/layers/diff.js');
  return diffEngines(one, await layersOf(against, undefined, options, context));
}

async function layersOf(
  file: string,
  layersFrom: string | undefined,
  options: InspectOptions,
  context: CommandContext,
): Promise<LayersResult> {
  const { layersOfEngine, layersOfFile } = await import('../../engines/layers/engine-layers.js');
  if (isLayersFile(file)) {
    if (layersFrom === undefined) return layersOfFile(file);
    throw wrongKind(`--layers-from goes with an engine; ${file} is a file of layers itself.`);
  }
  if (!isPlanFile(file)) throw wrongKind(`${file} is no engine; its layers cannot be listed.`);
  if (layersFrom !== undefined) return layersOfFile(layersFrom, file);
  return layersOfEngine(file, { ...context, device: options.device, ...engineWishes(options) });
}

async function inspectOnnx(
  file: string,
  checkWeights: boolean,
  context: CommandContext,
): Promise<ModelFacts> {
  const model = openModel(file);
  try {
    const facts = modelFacts(model);
    if (!checkWeights) return facts;
    const { lintWeights } = await import('../../formats/onnx/lint/weights.js');
    return { ...facts, findings: [...facts.findings, ...(await lintWeights(model, context))] };
  } finally {
    model.close();
  }
}

/** What only plans need is loaded only for them, so that inspecting a model stays quick. */
async function inspectPlan(
  file: string,
  output: string | undefined,
  { environment }: CommandContext,
): Promise<PlanFacts> {
  const { inspectPlan: planFacts } = await import('../../engines/plan/inspect.js');
  const { passportPath, readPassport } = await import('../../engines/identity/passport.js');
  const { findToolchains } = await import('../../tensorrt/toolchain/find.js');
  return planFacts(file, {
    stripTo: output,
    passport: {
      path: passportPath(file),
      read: () => (existsSync(passportPath(file)) ? readPassport(file) : null),
    },
    toolchains: await findToolchains(environment),
  });
}

const wrongKind = (message: string) => new TrtforgeError('TF_USAGE', message);
