import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LARGEST_DOCUMENT, readText, statIfThere } from '../../../base/files/files.js';
import { didYouMean } from '../../../base/text/suggest-name.js';
import { parseGpu } from '../../../engines/identity/target.js';
import { changedModel } from '../../../engines/plan/context-model.js';
import { type NamedAxes, otherThanBatch } from '../../../engines/profiles/profile.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { factsOfModel } from '../../../formats/onnx/inspect.js';
import type { ModelFacts } from '../../../formats/onnx/model-facts.js';
import type { CheckRequest } from '../options.js';
import { classesOfClassifier, layoutOf, logitsOf, otherTask } from './detector-outputs.js';
import { Findings } from './findings.js';
import { faultsOfInput } from './first-input.js';
import { engineFacts, exportedSymbols, isWritable, judgeLabels, namedFile } from './named-files.js';
import { builtEngine, effectiveMode, type NvinferPlan, type Prediction, predict } from './predict.js';
import { differsFromPassport } from './preprocessing.js';
import { type KeyEntry, type KeyGroups, parseKeyGroups } from './read-config.js';
import type { DeepstreamCheck } from './result.js';
import { checkServer, isServerText } from './server-check.js';
import { NvinferSettings } from './settings.js';
import { configuredPreparation, tryPreprocessing } from './trial.js';

/** Keys of a group of deepstream-app that replace those of the configuration it names; paths are relative to its own file. */
const overriding = [
  'batch-size',
  'model-engine-file',
  'labelfile-path',
  'interval',
  'gie-unique-id',
  'gpu-id',
];

/** The configurations that a file of deepstream-app names, the primary's first; null for any other file. */
function appOf({ groups }: KeyGroups, path: string) {
  if (groups.has('property')) return null;
  const gies = [...groups].flatMap(([group, entries]) => {
    const config = namedFile(path, entries.get('config-file')?.value.trim());
    if (!/^(primary|secondary)-gie\d*$/.test(group) || config === null) return [];
    if (/^(0|false)$/.test(entries.get('enable')?.value.trim() ?? '')) return [];
    const keys = overriding.flatMap((key) => {
      const { value, line } = entries.get(key) ?? {};
      if (value === undefined || line === undefined) return [];
      const absolute = key.endsWith('file') || key.endsWith('path');
      return [[key, { value: (absolute ? namedFile(path, value.trim()) : null) ?? value, line }] as const];
    });
    return [{ group, config, keys: new Map(keys) }];
  });
  return gies.length === 0 ? null : gies.toSorted((a, b) => a.group.localeCompare(b.group));
}

/** Predicts what DeepStream does with a configuration. Throws TF_SERVING_CONFIG where it cannot be read, TF_USAGE for an unknown GPU, what reading files throws. */
export async function checkDeepstream(
  { config: place, image, ...where }: CheckRequest,
  context: WorkContext = {},
  overrides?: { readonly path: string; readonly keys: ReadonlyMap<string, KeyEntry> },
): Promise<DeepstreamCheck> {
  const config = configIn(place);
  const text = readText(config, LARGEST_DOCUMENT, 'TF_SERVING_CONFIG');
  const target = { tensorrt: where.tensorrt ?? null, gpu: where.gpu ?? null };
  const base = { schema: 'trtforge.deepstream-check/1', config, target } as const;
  if (isServerText(text)) return { ...base, ...checkServer(text, config) };
  const file = parseKeyGroups(text, config);
  const app = appOf(file, config);
  if (app !== null) return checkApp(app, { config, image, ...where }, context);
  const own = file.groups.get('property') ?? new Map<string, KeyEntry>();
  const groups =
    overrides === undefined
      ? file.groups
      : new Map([...file.groups, ['property', new Map([...own, ...overrides.keys])]]);
  const settings = new NvinferSettings({ ...file, groups }, config);
  const { findings } = settings;
  for (const [key, { value, line }] of overrides?.keys ?? []) {
    const before = own.get(key)?.value.trim();
    if (before !== undefined && namedFile(config, before) !== value && before !== value.trim())
      findings.add(
        'app-overrides',
        `${overrides!.path}:${line}`,
        `${key}=${value} wins over ${before} of ${config}.`,
      );
  }
  const named = namedBy(settings, config);
  const { path, engineFile, engine, model } = named;
  const plan = planOf(settings, named);
  const capability = target.gpu === null ? null : parseGpu(target.gpu).capability;
  const predicted = predict(plan, engine?.state ?? null, { tensorrt: target.tensorrt, capability });
  const passport = engine?.passport ?? null;
  const changed =
    passport === null || model === null ? null : await changedModel(engineFile!, passport, context, model);
  if (changed !== null) settings.add('engine-other-model', 'model-engine-file', changed);
  const prepared = differsFromPassport(configuredPreparation(settings), passport?.model.preprocess);
  if (prepared !== undefined && !settings.isSet('input-tensor-from-meta'))
    settings.add('preparation-differs', 'net-scale-factor', prepared);
  judgeInput(settings, named);
  judgeFunctions(settings, named);
  judgeOutputs(settings, named);
  judgeBuild(settings, named, plan.mode, predicted.outcome === 'loads');
  const isClassifier = settings.number('network-type') === 1;
  const ofOutputs = isClassifier ? classesOfClassifier(named.outputs ?? []) : undefined;
  const classes = settings.isDetector ? settings.number('num-detected-classes') : ofOutputs;
  judgeLabels(path('labelfile-path'), settings.where('labelfile-path'), classes, findings);
  if (engine?.state.state === 'plan' && engine.state.passport === null)
    findings.add('passport-missing', engineFile!, 'Batch, dimensions, outputs and GPU were not compared.');
  const trial = image === undefined ? null : await tryPreprocessing(settings, model, image, context);
  const start = { ...predicted, ...failure(predicted, settings) };
  return {
    ...{ ...base, ...start, element: 'nvinfer', engine: engineFile, model, trial },
    findings: findings.list,
  };
}

/** Checks the first configuration that a file of deepstream-app names, with what that file replaces in it. */
async function checkApp(
  gies: NonNullable<ReturnType<typeof appOf>>,
  request: CheckRequest,
  context: WorkContext,
): Promise<DeepstreamCheck> {
  const [{ config, keys }] = gies as [(typeof gies)[number]];
  const checked = await checkDeepstream({ ...request, config }, context, { path: request.config, keys });
  const findings = new Findings();
  for (const [at, { group, config: named }] of gies.entries())
    findings.add(
      'app-config',
      request.config,
      `[${group}] of deepstream-app is configured by ${named}, which is ${at === 0 ? 'checked here' : 'another file'}.`,
    );
  return { ...checked, findings: [...checked.findings, ...findings.list] };
}

/** The file, or the one of nvinfer in a folder, as `deepstream config` writes it. */
function configIn(place: string): string {
  if (statIfThere(place)?.isDirectory() !== true) return place;
  const found = readdirSync(place).filter((name) => /^config_infer_.*\.(?:txt|ya?ml)$/.test(name));
  const [only] = found;
  if (only !== undefined && found.length === 1) return join(place, only);
  throw new TrtforgeError('TF_USAGE', `${place} has ${found.length} files called config_infer_….txt.`, {
    remedy: `Name one file${found.map((name, at) => (at === 0 ? `: ${name}` : name)).join(', ')}.`,
  });
}

type Named = ReturnType<typeof namedBy>;

/** The files that a configuration names; one that cannot be read is null, and a finding. */
function namedBy(settings: NvinferSettings, config: string) {
  const path = (key: string) => namedFile(config, settings.text(key));
  const engineFile = path('model-engine-file');
  const engine = engineFile === null ? null : engineFacts(engineFile);
  const model = path('onnx-file');
  const facts = model === null ? null : modelFacts(model, settings);
  const library = path('custom-lib-path');
  const symbols = exportedSymbols(library, settings.where('custom-lib-path'), settings.findings);
  const ports: NamedAxes | null = engine?.ports ?? facts;
  return { path, engineFile, engine, model, facts, library, symbols, ports, outputs: ports?.outputs };
}

/** The checks that nvinfer makes when an engine is there, built or loaded. */
const afterBuild: readonly string[] = [
  'labels-missing',
  'function-missing',
  'type-unknown',
  'input-rank',
  'color-format',
  'offsets-count',
  'mean-missing',
  'instance-mask',
];

/** An error that ends nvinfer whatever the engine is; the verdict on the engine is a finding itself. */
function failure(
  { outcome, reason, message, writes }: Prediction,
  { findings, where }: NvinferSettings,
): Partial<DeepstreamCheck> {
  const { fatal } = findings;
  if (reason !== 'engine-fits' && !findings.list.some(({ code }) => code === reason))
    findings.add(reason, where('model-engine-file'), message, outcome === 'builds' ? 'warning' : 'error');
  if (fatal !== undefined && outcome !== 'fails') {
    const written = afterBuild.includes(fatal.code) ? writes : null;
    return { outcome: 'fails', reason: fatal.code, message: fatal.message, writes: written };
  }
  return {};
}

function modelFacts(path: string, settings: NvinferSettings): ModelFacts | null {
  try {
    return factsOfModel(path);
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    const code = error.code === 'TF_FILE_NOT_FOUND' ? 'model-missing' : 'model-invalid';
    settings.add(code, 'onnx-file', error.message);
    return null;
  }
}

function planOf(settings: NvinferSettings, { path, facts, symbols, engineFile }: Named): NvinferPlan {
  const [channels = 0, height = 0, width = 0] = settings.inferDims;
  const isNhwc = settings.number('network-input-order') === 1;
  const dims = isNhwc ? [height, width, channels] : [channels, height, width];
  const calibration = path('int8-calib-file');
  const isCalibrated = calibration !== null && statIfThere(calibration) !== undefined;
  const creator = settings.text('engine-create-func-name') ?? 'NvDsInferCudaEngineGet';
  const isCreated = symbols?.has(creator) === true;
  const networkMode = settings.number('network-mode');
  // A function that builds gets the mode as it is.
  const isByFunction = isCreated || path('tlt-encoded-model') !== null;
  const mode = isByFunction ? networkMode : effectiveMode(networkMode, isCalibrated);
  const core = settings.number('use-dla-core', -1);
  const device = settings.isSet('enable-dla') && core >= 0 ? `dla${core}` : `gpu${settings.number('gpu-id')}`;
  const batchSize = settings.number('batch-size', 1);
  // nvinfer names an engine of a creator by its working folder, which is taken to be the one of the file named.
  const here = join(dirname(engineFile ?? ''), 'model');
  const isNamedSo = engineFile === builtEngine(here, batchSize, device, mode);
  const file = isCreated ? here : (path('tlt-encoded-model') ?? path('onnx-file'));
  const isParsed = !isByFunction && symbols?.has('NvDsInferCreateModelParser');
  const isUnknown = isCreated ? !isNamedSo : isParsed;
  const ofFile = file !== null && {
    path: file,
    isThere: isCreated || statIfThere(file) !== undefined,
    isFolderWritable: isWritable(dirname(file)),
    inputs: isCreated ? [] : (facts?.inputs.map(({ shape }) => shape) ?? []),
  };
  return {
    ...{ engineFile, batchSize, mode, device },
    dims: dims.every((dim) => dim > 0) ? dims : null,
    source: isUnknown ? { path: null, isThere: true, isFolderWritable: true, inputs: [] } : ofFile || null,
  };
}

function judgeInput(settings: NvinferSettings, { path, ports }: Named): void {
  const isFilled = !settings.isSet('input-tensor-from-meta');
  const mean = path('mean-file');
  if (isFilled && mean !== null && statIfThere(mean) === undefined)
    settings.add('mean-missing', 'mean-file', `The picture of means ${mean} is missing.`);
  if (ports === null) return;
  const dims = settings.inferDims;
  const channels = dims.every((dim) => dim > 0) ? dims[0] : undefined;
  const color = settings.number('model-color-format');
  const isOffset = mean === null && settings.number('net-scale-factor', 1) > 0;
  const offsets = isOffset ? settings.list('offsets').length : 0;
  for (const [code, key, message] of faultsOfInput(ports, { channels, color, offsets }))
    if (isFilled || code === 'type-unknown') settings.add(code, key, message);
  const other = otherThanBatch(ports);
  if (other !== undefined)
    settings.add('batch-axis', 'batch-size', `nvinfer splits ${other.tensor} by pictures: ${other.why}.`);
}

/** The middle part of the keys that name a parse function, by network-type. */
const parsed: readonly string[] = ['bbox', 'classifier', 'segmentation', 'bbox-instance-mask'];

function judgeFunctions(settings: NvinferSettings, { library, symbols, outputs }: Named): void {
  const type = settings.number('network-type');
  const parser = `parse-${parsed[type]}-func-name`;
  const isClustered = settings.number('cluster-mode') !== 4;
  if (type === 3 && (isClustered || library === null || settings.text(parser) === undefined))
    settings.add(
      'instance-mask',
      'network-type',
      'nvinfer has no clustering and no parser of its own for masks.',
    );
  for (const key of ['engine-create-func-name', parser]) {
    const name = settings.text(key);
    if (name === undefined) continue;
    if (library === null) settings.add('function-without-library', key, `nvinfer ignores ${key}=${name}.`);
    else if (symbols?.has(name) === false)
      settings.add('function-missing', key, `${library} has no ${name}.${didYouMean(name, symbols)}`);
  }
  const lacks = (part: string) => outputs?.every(({ name }) => !name.includes(part)) === true;
  if (type === 0 && settings.text(parser) === undefined && (lacks('bbox') || lacks('cov')))
    settings.add('parser-missing', 'network-type', 'nvinfer itself reads outputs named "cov" and "bbox".');
}

function judgeOutputs(settings: NvinferSettings, { outputs, facts, path }: Named): void {
  if (outputs === undefined) return;
  const type = settings.number('network-type');
  const task = facts === null ? undefined : otherTask(facts.metadata);
  if (task !== undefined && (type === 0 || (type === 1 && task !== 'classify')))
    settings.add(
      'task-differs',
      'network-type',
      `The metadata of the model state the task "${task}", and network-type=${type} is another.`,
    );
  if (type === 1 && facts !== null && classesOfClassifier(outputs) !== undefined)
    for (const name of logitsOf(path('onnx-file')!))
      settings.add(
        'classifier-logits',
        'classifier-threshold',
        `${name} does not end in Softmax or Sigmoid: classifier-threshold is compared with logits.`,
      );
  const names = outputs.map(({ name }) => name);
  for (const name of settings.list<string>('output-blob-names'))
    if (!names.includes(name))
      settings.add('output-unknown', 'output-blob-names', `${name} is not among ${names.join(';')}.`);
  const layout = layoutOf(outputs);
  if (type !== 0 || task !== undefined || layout === undefined) return;
  if (layout.classes !== null && settings.number('num-detected-classes') > layout.classes)
    settings.add('classes-count', 'num-detected-classes', `The outputs have ${layout.classes} classes.`);
  const isBoxes = layout.kind === 'boxes';
  const boxes = isBoxes
    ? 'many boxes an object, of which 4 keeps all'
    : 'one box an object, which may get lost';
  if (isBoxes === (settings.number('cluster-mode') === 4))
    settings.add('cluster-mode', 'cluster-mode', `The outputs have ${boxes}.`);
}

/** Judges the types of a build, which do not decide this start where the engine is loaded, and the input values of the network. */
function judgeBuild(settings: NvinferSettings, { facts }: Named, mode: number, isLoaded: boolean): void {
  const networkMode = settings.number('network-mode');
  const isTyped = settings.isSet('strongly-typed');
  if (!isTyped && networkMode !== mode)
    settings.add('calibration-missing', 'network-mode', 'Without a calibration nvinfer builds in FP16.');
  if (!isTyped && facts !== null && hasTypes(facts))
    settings.add(
      'model-typed',
      'onnx-file',
      'A build may change the types of the model.',
      isLoaded ? 'info' : undefined,
    );
  if (isTyped && networkMode !== 0)
    settings.add(
      'mode-strongly-typed',
      'network-mode',
      'Beside strongly-typed=1 TensorRT rejects the mode; nvinfer tries once more without FP16.',
    );
  if (!settings.isSet('input-tensor-from-meta') && !settings.has('net-scale-factor'))
    settings.add('scale-default', 'property', 'net-scale-factor is not set: values are 0 to 255.');
}

/** Whether a model states types that a build should keep. */
export const hasTypes = ({ initializersByDtype, ops }: ModelFacts): boolean =>
  'QuantizeLinear' in ops || Object.keys(initializersByDtype).some((dtype) => /float(16|8|4)/.test(dtype));
