import { z } from 'zod';
import { parseJson } from '../../base/files/json.js';
import * as is from '../../base/options/kinds.js';
import { contextOptions, type OptionsOf, optional } from '../../base/options/option.js';
import { faultText } from '../../base/text/schema-error.js';
import { catalogue, TrtforgeError } from '../../errors.js';
import type { Passport } from '../identity/passport.js';
import { isEngineFile, planDigest, readPlanHeader } from '../plan/header.js';
import { verifyEngine } from '../plan/verify-engine.js';
import { loadOptions } from '../runtime/tensorrt/options.js';
import { askEngine } from '../runtime/tensorrt/supervised-engine.js';
import { checkLayersMatch, type PlanOfLayers } from './layers-of-plan.js';
import { LARGEST_BYTES, layersInvalid, layersText, readLayers } from './read-layers.js';
import { type EngineLayers, type LayersResult, type LoadedFacts, layersResultSchema } from './result.js';
import { layerFindings, summarizeLayers } from './summary.js';

export const layersOptions = {
  ...contextOptions,
  /** Ordinal among the visible GPUs; default 0. */
  device: optional(is.whole(0)),
  /** A file that has the layers of the engine, which is then not loaded. */
  from: optional(is.text),
  ...loadOptions,
};

export interface LayersOptions extends OptionsOf<typeof layersOptions> {}

/**
 * The layers of an engine, which is loaded, or in a file of layers (`.json`). `from` names the file that has those of the engine, which is then not loaded.
 * Errors: those of `layersOfEngine` and `layersOfFile`, TF_USAGE for another kind of file.
 */
export async function layersOf(
  file: string,
  { from, ...options }: LayersOptions = {},
): Promise<LayersResult> {
  if (file.toLowerCase().endsWith('.json')) {
    if (from === undefined) return layersOfFile(file);
    throw wrongKind(`--from is for engines; ${file} is a file of layers.`);
  }
  if (!isEngineFile(file)) throw wrongKind(`${file} is not an engine: it has no layers of TensorRT.`);
  if (from !== undefined) return layersOfFile(from, file);
  return layersOfEngine(file, options).catch((error: unknown) => {
    throw withoutGpuRemedy(error);
  });
}

const wrongKind = (message: string) => new TrtforgeError('TF_USAGE', message);

export interface LayersChildAnswer {
  readonly text: string;
  readonly planSha256: string;
  readonly loaded: LoadedFacts;
}

/**
 * The layers of an engine, asked of the engine itself in a child process. Errors: those of `loadEngine` (TF_GPU_UNAVAILABLE on a machine without a GPU), TF_LAYERS_INVALID, TF_CANCELLED, TF_CHILD_DIED.
 */
export async function layersOfEngine(planPath: string, options: LayersOptions): Promise<LayersResult> {
  const { planBytes } = readPlanHeader(planPath);
  const answer = await askEngine(childModule, planPath, options, `loading ${planPath}`);
  const { text, planSha256, loaded } = answer as LayersChildAnswer;
  const read = readLayers(text, `The inspector's text of ${planPath}`);
  return resultOf(read, { file: planPath, layersFrom: planPath, planBytes, planSha256, loaded });
}

const childModule = new URL('../../../dist/engines/layers/engine-layers-child.js', import.meta.url);

/**
 * The layers of an engine from a file: what `trtexec --exportLayerInfo` wrote, or what `engine layers ENGINE --json` did on another machine. No GPU and
 * no library is needed. `planPath` is the engine it should be of: it is compared with it (`checkLayersMatch`). Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE,
 * TF_LAYERS_INVALID, TF_LAYERS_MISMATCH, TF_PLAN_INVALID.
 */
export function layersOfFile(path: string, planPath?: string): LayersResult {
  const plan = planPath === undefined ? undefined : planOfLayers(planPath);
  const text = layersText(path);
  const result = OUR_RESULT.test(text.slice(0, 200)) ? ourResult(text, path) : exported(text, path, planPath);
  if (plan === undefined) return result;
  const { planBytes, planSha256 } = plan;
  const claim = { path, read: result, planBytes: result.planBytes, planSha256: result.planSha256 };
  const findings = [...checkLayersMatch(claim, plan), ...result.findings];
  return { ...result, file: plan.path, planBytes, planSha256, findings };
}

function exported(text: string, path: string, planPath = path): LayersResult {
  const source = { file: planPath, layersFrom: path, planBytes: null, planSha256: null, loaded: null };
  return resultOf(readLayers(text, path), source);
}

function planOfLayers(path: string): PlanOfLayers {
  const header = readPlanHeader(path);
  const passport = passportOf(path);
  const planSha256 = typeof passport === 'string' ? planDigest(header) : passport.plan.sha256;
  return { path, planBytes: header.planBytes, planSha256, passport };
}

/** The passport of this very plan, or why it cannot be had. */
function passportOf(path: string): Passport | string {
  try {
    return verifyEngine(path);
  } catch (error) {
    if (error instanceof TrtforgeError) return error.message;
    throw error;
  }
}

const OUR_RESULT = /^\s*\{\s*"schema":\s*"trtforge\.engine-layers\/1"/;

const earlierOrNow = z.object({
  ...layersResultSchema.shape,
  planSha256: layersResultSchema.shape.planSha256.default(null),
});

function ourResult(text: string, path: string): LayersResult {
  const document = parseJson(text, LARGEST_BYTES, (why, cause) => layersInvalid(path, why, cause));
  // The command line adds fields of its own around a result. Earlier results had no digest.
  const checked = earlierOrNow.safeParse(document);
  if (checked.success) return { ...checked.data, layersFrom: path };
  throw layersInvalid(path, faultText(checked.error), checked.error);
}

type Source = Pick<LayersResult, 'file' | 'layersFrom' | 'planBytes' | 'planSha256' | 'loaded'>;

const resultOf = (read: EngineLayers, source: Source): LayersResult => ({
  schema: 'trtforge.engine-layers/1',
  kind: 'layers',
  ...source,
  ...read,
  summary: summarizeLayers(read),
  findings: layerFindings(read, source.file),
});

/** Where there is no GPU the exported text of another machine helps; it stands in place of the engine in every verb, whatever options that has. */
function withoutGpuRemedy(error: unknown): unknown {
  if (!(error instanceof TrtforgeError) || error.code !== 'TF_GPU_UNAVAILABLE') return error;
  const { code, message, details } = error;
  return new TrtforgeError(code, message, {
    cause: error,
    remedy: `${catalogue.TF_GPU_UNAVAILABLE.remedy} Without one, export the layers where the engine runs (\`trtforge engine layers ENGINE --json\`, or trtexec --exportLayerInfo=FILE) and pass that .json file in place of the engine.`,
    details,
  });
}
