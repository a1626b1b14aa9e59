import { dirname } from 'node:path';
import { LARGEST_DOCUMENT, readText, statIfThere } from '../../../base/files/files.js';
import { didYouMean } from '../../../base/text/suggest-name.js';
import { parseGpu } from '../../../engines/identity/target.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { factsOfModel } from '../../../formats/onnx/facts-of-model.js';
import type { ModelFacts } from '../../../formats/onnx/model-facts.js';
import type { DeepstreamCheck } from './check-result.js';
import { parseKeyGroups } from './key-file.js';
import { layoutOf, type Output } from './layout.js';
import { engineFacts, exportedSymbols, isWritable, judgeLabels, namedFile } from './named-files.js';
import { effectiveMode, type NvinferPlan, type Prediction, predict } from './predict.js';
import { checkServer, isServerText } from './server-check.js';
import { NvinferSettings } from './settings.js';
import { tryPreprocessing } from './trial.js';

export interface CheckRequest {
  readonly config: string;
  /** `10.14` or a whole version. */
  readonly tensorrt?: string;
  /** `sm_89`, or a name as `L4`. */
  readonly gpu?: string;
  readonly image?: string;
}

/** Predicts what DeepStream does with a configuration. Throws TF_SERVING_CONFIG where it cannot be read, TF_USAGE for an unknown GPU, what reading files throws. */
export async function checkDeepstream(
  { config, image, ...where }: CheckRequest,
  context: WorkContext = {},
): Promise<DeepstreamCheck> {
  const text = readText(config, LARGEST_DOCUMENT, 'TF_SERVING_CONFIG');
  const target = { tensorrt: where.tensorrt ?? null, gpu: where.gpu ?? null };
  const base = { schema: 'trtforge.deepstream-check/1', config, target } as const;
  if (isServerText(text)) return { ...base, ...checkServer(text, config) };
  const settings = new NvinferSettings(parseKeyGroups(text, config), config);
  const { findings } = settings;
  const path = (key: string) => {
    const name = settings.text(key);
    return name === undefined ? null : namedFile(config, name);
  };
  const [engineFile, model, labels] = [path('model-engine-file'), path('onnx-file'), path('labelfile-path')];
  const engine = engineFile === null ? null : engineFacts(engineFile);
  const facts = model === null ? null : modelFacts(model, settings);
  const library = path('custom-lib-path');
  const symbols =
    library === null ? null : exportedSymbols(library, settings.where('custom-lib-path'), findings);
  const plan = planOf(settings, path, facts, symbols);
  const capability = target.gpu === null ? null : parseGpu(target.gpu).capability;
  const predicted = predict(plan, engine?.state ?? null, { tensorrt: target.tensorrt, capability });

  const outputs = engine?.outputs ?? facts?.outputs ?? null;
  judgeFunctions(settings, library, symbols, outputs);
  if (outputs !== null) judgeOutputs(settings, outputs);
  judgeBuild(settings, plan, facts, predicted);
  const isDetector = [0, 3].includes(settings.number('network-type', 0));
  const classes = isDetector ? settings.number('num-detected-classes', 0) : null;
  if (labels !== null) judgeLabels(labels, settings.where('labelfile-path'), classes, findings);
  if (engine?.state.state === 'plan' && engine.state.passport === null)
    findings.add(
      'passport-missing',
      engineFile!,
      'The engine has no passport, so that batch, dimensions, outputs and GPU were not compared.',
    );
  const trial = image === undefined ? null : await tryPreprocessing(settings, model, image, context);
  const outcome = { ...predicted, ...failure(predicted, settings) };
  return {
    ...base,
    ...outcome,
    ...{ element: 'nvinfer', engine: engineFile, model, trial, findings: findings.list },
  };
}

/** What nvinfer looks at when an engine is there, built or loaded. */
const afterBuild: readonly string[] = ['labels-missing', 'function-missing'];

/** An error that ends nvinfer whatever the engine is; else the outcome becomes a finding itself. */
function failure(
  { outcome, reason, message, writes }: Prediction,
  { findings, where }: NvinferSettings,
): Pick<DeepstreamCheck, 'outcome' | 'reason' | 'message' | 'writes'> | null {
  const { fatal } = findings;
  if (fatal !== undefined && outcome !== 'fails') {
    const { code, message: why } = fatal;
    return {
      outcome: 'fails',
      reason: code,
      message: why,
      writes: afterBuild.includes(code) ? writes : null,
    };
  }
  if (reason !== 'engine-fits' && !findings.list.some(({ code }) => code === reason))
    findings.add(reason, where('model-engine-file'), message, outcome === 'builds' ? 'warning' : 'error');
  return null;
}

function modelFacts(path: string, settings: NvinferSettings): ModelFacts | null {
  try {
    return factsOfModel(path);
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    const code = error.code === 'TF_FILE_NOT_FOUND' ? 'model-missing' : 'model-invalid';
    settings.findings.add(code, settings.where('onnx-file'), error.message);
    return null;
  }
}

function planOf(
  settings: NvinferSettings,
  path: (key: string) => string | null,
  facts: ModelFacts | null,
  symbols: ReadonlySet<string> | null,
): NvinferPlan {
  const [channels = 0, height = 0, width = 0] = settings.list<number>('infer-dims');
  const isNhwc = settings.number('network-input-order', 0) === 1;
  const dims = isNhwc ? [height, width, channels] : [channels, height, width];
  const calibration = path('int8-calib-file');
  const creator = settings.text('engine-create-func-name') ?? 'NvDsInferCudaEngineGet';
  const isCustom = symbols?.has(creator) === true || symbols?.has('NvDsInferCreateModelParser') === true;
  const file = path('tlt-encoded-model') ?? path('onnx-file');
  const ofFile = file !== null && {
    path: file,
    isThere: statIfThere(file) !== undefined,
    isFolderWritable: isWritable(dirname(file)),
    inputs: (facts?.inputs ?? []).map(
      ({ shape }) => shape?.map((dim) => (typeof dim === 'number' ? dim : null)) ?? null,
    ),
  };
  const core = settings.number('use-dla-core', -1);
  return {
    engineFile: path('model-engine-file'),
    batchSize: settings.number('batch-size', 1),
    dims: dims.every((dim) => dim > 0) ? dims : null,
    mode: effectiveMode(
      settings.number('network-mode', 0),
      calibration !== null && statIfThere(calibration) !== undefined,
    ),
    device: settings.isSet('enable-dla') && core >= 0 ? `dla${core}` : `gpu${settings.number('gpu-id', 0)}`,
    source: isCustom ? { path: null, isThere: true, isFolderWritable: true, inputs: [] } : ofFile || null,
  };
}

/** Which key names the parse function, by network-type. */
const parsers: Readonly<Record<number, string>> = {
  0: 'parse-bbox-func-name',
  1: 'parse-classifier-func-name',
  2: 'parse-segmentation-func-name',
  3: 'parse-bbox-instance-mask-func-name',
};

function judgeFunctions(
  settings: NvinferSettings,
  library: string | null,
  symbols: ReadonlySet<string> | null,
  outputs: readonly Output[] | null,
): void {
  const { findings } = settings;
  const type = settings.number('network-type', 0);
  for (const key of ['engine-create-func-name', parsers[type] ?? '']) {
    const [name, where] = [settings.text(key), settings.where(key)];
    if (name === undefined) continue;
    if (library === null) findings.add('function-without-library', where, `nvinfer ignores ${key}=${name}.`);
    else if (symbols?.has(name) === false)
      findings.add(
        'function-missing',
        where,
        `${library} does not export ${name}.${didYouMean(name, symbols)}`,
      );
  }
  const lacks = (part: string) => outputs?.every(({ name }) => !name.includes(part)) === true;
  if (type === 0 && settings.text(parsers[0]!) === undefined && (lacks('bbox') || lacks('cov')))
    findings.add(
      'parser-missing',
      settings.where('network-type'),
      'No parse function is named, and nvinfer\'s own reads outputs with "cov" and "bbox" in their names.',
    );
}

function judgeOutputs(settings: NvinferSettings, outputs: readonly Output[]): void {
  const { findings } = settings;
  const names = outputs.map(({ name }) => name);
  for (const name of settings.list<string>('output-blob-names'))
    if (!names.includes(name))
      findings.add(
        'output-unknown',
        settings.where('output-blob-names'),
        `There is no output "${name}": ${names.join(';')}.`,
      );
  const layout = layoutOf(outputs);
  if (settings.number('network-type', 0) !== 0 || layout === undefined) return;
  const classes = settings.number('num-detected-classes', 0);
  if (layout.classes !== null && classes > layout.classes)
    findings.add(
      'classes-count',
      settings.where('num-detected-classes'),
      `num-detected-classes is ${classes}, and the outputs have ${layout.classes} classes.`,
    );
  const mode = settings.number('cluster-mode', 0);
  if ((layout.kind === 'boxes') === (mode === 4))
    findings.add(
      'cluster-mode',
      settings.where('cluster-mode'),
      mode === 4
        ? 'The outputs have many boxes an object, and cluster-mode=4 keeps them all.'
        : `The outputs have one box an object, and cluster-mode=${mode} may remove some.`,
    );
}

/** What a build makes of the model, and what the network gets. */
function judgeBuild(
  settings: NvinferSettings,
  { mode }: NvinferPlan,
  facts: ModelFacts | null,
  { outcome }: Prediction,
): void {
  const { findings } = settings;
  const networkMode = settings.number('network-mode', 0);
  const where = settings.where('network-mode');
  const isTyped = settings.isSet('strongly-typed');
  if (networkMode !== mode)
    findings.add('calibration-missing', where, 'Without a readable int8-calib-file nvinfer builds in FP16.');
  if (!isTyped && facts !== null && hasTypes(facts))
    findings.add(
      'model-typed',
      settings.where('onnx-file'),
      'The model has types of its own, which a build without strongly-typed=1 may change.',
      outcome === 'loads' ? 'info' : undefined,
    );
  if (isTyped && networkMode !== 0)
    findings.add(
      'mode-strongly-typed',
      where,
      'TensorRT rejects a precision mode for a strongly typed network: a build ends.',
      outcome === 'loads' ? 'warning' : undefined,
    );
  if (!settings.isSet('input-tensor-from-meta') && !settings.has('net-scale-factor'))
    findings.add(
      'scale-default',
      settings.where('property'),
      'net-scale-factor is not set: the network gets values of 0 to 255.',
    );
}

/** Whether a model states types that a build should keep. */
export const hasTypes = ({ initializersByDtype, ops }: ModelFacts): boolean =>
  'QuantizeLinear' in ops || Object.keys(initializersByDtype).some((dtype) => /float(16|8|4)/.test(dtype));
