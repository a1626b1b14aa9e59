import { runsOn } from '../../../engines/identity/target.js';
import { loadsIn } from '../../../engines/plan/loads.js';
import type { Output } from './detector-outputs.js';
import type { FindingCode } from './findings.js';
import type { DeepstreamCheck } from './result.js';

/** The facts of a configuration, and of the files it names, that decide whether nvinfer loads or builds. */
export interface NvinferPlan {
  /** `model-engine-file` as an absolute path; null: not set. */
  readonly engineFile: string | null;
  readonly batchSize: number;
  /** Without the batch, in the order of the network; null where infer-dims is not set, and nvinfer does not compare. */
  readonly dims: readonly number[] | null;
  /** The mode that a build has in the end (`effectiveMode`). */
  readonly mode: number;
  /** `gpu0`, `dla1` */
  readonly device: string;
  /** The source of a build; null: there is none, and the build fails. */
  readonly source: BuildSource | null;
}

interface BuildSource {
  /** Written beside: `PATH_b1_gpu0_fp16.engine`. null: the custom library decides. */
  readonly path: string | null;
  readonly isThere: boolean;
  readonly isFolderWritable: boolean;
  /** Of the model as declared; empty where it is not known. */
  readonly inputs: readonly Output['shape'][];
}

/** The state of the engine, as known without loading it. */
export type EngineState =
  | { readonly state: 'missing' }
  | { readonly state: 'invalid'; readonly why: string }
  | {
      readonly state: 'plan';
      readonly product: 'tensorrt' | 'tensorrt-rtx';
      readonly version: string | null;
      readonly passport: {
        readonly flags: readonly string[];
        readonly capabilities: readonly number[];
        readonly hardwareCompatibility: string;
        /** Profile 0 of the first input, with the batch; null where it is not known. */
        readonly profile: { readonly min: readonly number[]; readonly max: readonly number[] } | null;
      } | null;
    };

/** Where the pipeline will run; what is null is not compared. */
export interface NvinferTarget {
  readonly tensorrt: string | null;
  /** 89 for sm_89. */
  readonly capability: number | null;
}

export interface Prediction extends Pick<DeepstreamCheck, 'outcome' | 'message' | 'writes'> {
  readonly reason: FindingCode | 'engine-fits';
}

/** nvinfer's names of network-mode. */
export const modes: readonly string[] = 'fp32 int8 fp16 best'.split(' ');

/** The network-mode of a build in the end: without a calibration INT8 and BEST become FP16. That FP16 becomes FP32 on a GPU without it is left out: no TensorRT of DeepStream serves one. */
export const effectiveMode = (networkMode: number, hasCalibration: boolean): number =>
  networkMode % 2 === 1 && !hasCalibration ? 2 : networkMode;

/** The name under which nvinfer writes an engine that it builds of a model. */
export const builtEngine = (model: string, batch: number, device: string, mode: number): string =>
  `${model}_b${batch}_${device}_${modes[mode]}.engine`;

/**
 * Predicts the start of nvinfer, by the rules of its sources (DeepStream 9.1, generateBackendContext): load the engine; on any failure, or where batch and dimensions of
 * its first input do not fit, build one and write it beside the model, under a name of its own; with nothing to build from, end. Pure.
 */
export function predict(plan: NvinferPlan, engine: EngineState | null, target: NvinferTarget): Prediction {
  const [reason, why] = misfitOf(plan, engine, target) ?? [null, ''];
  const { source, batchSize, device, mode } = plan;
  const end = (
    outcome: Prediction['outcome'],
    code: Prediction['reason'],
    then: string,
    writes: string | null = null,
  ): Prediction => ({ outcome, reason: code, message: `${why} ${then}`.trim(), writes });
  if (reason === null) return end('loads', 'engine-fits', 'nvinfer loads the engine, as far as is known.');
  const sourceless = engine === null ? 'model-not-named' : reason;
  if (source === null) return end('fails', sourceless, 'There is no model to build from, and nvinfer ends.');
  if (!source.isThere) return end('fails', 'model-missing', 'The model to build one from is missing.');
  const unbuildable = unbuildableOf(plan.dims, source.inputs);
  if (unbuildable !== null) return end('fails', 'model-dims', unbuildable);
  const name = source.path === null ? null : builtEngine(source.path, batchSize, device, mode);
  if (name !== null && !source.isFolderWritable)
    return end('rebuilds', 'folder-read-only', `nvinfer builds at every start: it may not write ${name}.`);
  if (engine === null)
    return end('builds', reason, 'nvinfer builds one, at every start until it is named.', name);
  if (name === null)
    return end(
      'rebuilds',
      reason,
      'nvinfer builds one, which the custom library or its working folder names.',
    );
  if (name !== plan.engineFile)
    return end('rebuilds', reason, 'nvinfer builds at every start: it never writes the file named.', name);
  return engine.state === 'missing'
    ? end('builds', reason, 'nvinfer builds it at the first start, and loads it then.', name)
    : end('rebuilds', reason, 'nvinfer replaces it by one that it builds.', name);
}

type Misfit = readonly [reason: FindingCode, why: string];

function misfitOf(plan: NvinferPlan, engine: EngineState | null, target: NvinferTarget): Misfit | null {
  if (engine === null) return ['engine-not-named', 'No engine is named.'];
  if (engine.state === 'missing') return ['engine-missing', 'The engine is missing.'];
  if (engine.state === 'invalid') return ['engine-invalid', engine.why];
  const { product, passport } = engine;
  if (product === 'tensorrt-rtx')
    return ['engine-rtx', 'It is an engine of TensorRT-RTX, which DeepStream cannot load.'];
  if (target.tensorrt !== null) {
    const runtime = { product: 'tensorrt', version: target.tensorrt };
    const { loads, why } = loadsIn(engine, runtime, passport?.flags);
    // nvinfer never allows the code that a version-compatible plan carries.
    if (loads !== 'yes') return ['engine-other-tensorrt', why];
  }
  if (passport === null) return null;
  const { capabilities, hardwareCompatibility, profile } = passport;
  const { capability } = target;
  const reach = { target: { computeCapabilities: capabilities }, recipe: { hardwareCompatibility } };
  if (capability !== null && !runsOn(capability, reach))
    return ['engine-other-gpu', `It is for sm_${capabilities.join(', sm_')}, not for sm_${capability}.`];
  if (profile === null) return null;
  const { min, max } = profile;
  if ((max[0] ?? 0) < plan.batchSize)
    return ['engine-batch', `batch-size is ${plan.batchSize}, and the engine takes at most ${max[0]}.`];
  if (plan.dims === null) return null;
  const full = [plan.batchSize, ...plan.dims];
  const isWithin = full.every((dim, axis) => dim >= min[axis]! && dim <= max[axis]!);
  if (full.length === min.length && isWithin) return null;
  const limits = `${min.join('x')} to ${max.join('x')}`;
  return ['engine-dims', `batch-size and infer-dims are ${full.join('x')}, and the engine takes ${limits}.`];
}

/** Why a build ends: nvinfer opens the batch of each input and gives the first one infer-dims; every other dimension must be fixed. */
function unbuildableOf(wanted: NvinferPlan['dims'], inputs: BuildSource['inputs']): string | null {
  for (const [index, shape] of inputs.entries()) {
    if (shape === null) continue;
    const inner = shape.slice(1);
    const isOpen = (dim: unknown) => typeof dim !== 'number';
    const dims = index === 0 ? wanted : null;
    if (dims === null) {
      if (!inner.some(isOpen)) continue;
      return `A build ends: input ${index} of the model has open dimensions, and infer-dims does not set them.`;
    }
    if (inner.length !== dims.length || inner.some((dim, axis) => !isOpen(dim) && dim !== dims[axis]))
      return `A build ends: infer-dims sets ${dims.join('x')}, and the model takes ${inner.join('x')}.`;
  }
  return null;
}
