import { isAbsolute, join, relative } from 'node:path';
import { z } from 'zod';
import { readText, statIfThere } from '../../base/files/files.js';
import { type Passport, readPassport } from '../../engines/identity/passport.js';
import { type LayersOptions, layersOf } from '../../engines/layers/engine-layers.js';
import { isCopy, totalBytes } from '../../engines/layers/read-layers.js';
import type { EngineLayer, LayersResult } from '../../engines/layers/result.js';
import { isEngineFile, readPlanHeader } from '../../engines/plan/header.js';
import { multiplications, type ProgramKernel, readPlanProgram } from '../../engines/plan/program.js';
import { TrtforgeError } from '../../errors.js';
import type { Work } from '../../events.js';
import type { ConversionResult } from '../../formats/precision/result.js';
import { type BenchResult, benchResultSchema } from '../../quality/bench/result.js';
import { measureSchema } from '../../quality/verify/result.js';
import { type ForgeResult, forgeResultSchema } from '../../report/forge-result.js';
import { forgeReport } from '../../report/pages/forge.js';
import { type ReportKind, readReport } from '../../report/pages/report.js';
import { readExportedProfile } from '../../tensorrt/trtexec/exports.js';
import { type ModelLayers, noLayer, plainTensor, readModelLayers } from './model-layers.js';
import type { Side } from './result.js';

/** One side of the page: an engine, a model, a run root or a file of layers, and files with facts of it. */
interface SideRequest {
  readonly file: string;
  readonly from: readonly string[];
  /** Shapes of inputs that FLOPs and sizes of a model are for. */
  readonly shapes: ReadonlyMap<string, readonly number[]>;
}

/** Times of layers in the order in which they were measured, milliseconds of `runs` together. */
export interface Times {
  readonly file: string;
  readonly layers: readonly { readonly name: string; readonly ms: number; readonly runs: number }[];
  /** Median of a run as a whole; null where nothing states it. */
  readonly measuredMs: number | null;
}

/** What of other verbs' results belongs to layers; their own schemas judged them. */
const errorsSchema = z.object({
  tensors: z.array(
    z.object({
      name: z.string(),
      node: z.string(),
      outcome: z.string(),
      error: z.object({ sqnr: measureSchema }).nullable(),
    }),
  ),
});
const adviceSchema = z.object({
  units: z.array(
    z.object({ nodes: z.array(z.string()), why: z.string(), alone: z.object({ sqnrDb: measureSchema }) }),
  ),
  ruledOut: z.array(z.object({ node: z.string(), reason: z.string() })),
});

/** Everything that was read of one side. */
export interface Evidence {
  readonly kind: Side['kind'];
  readonly file: string;
  readonly from: readonly string[];
  /** Of all profiles. */
  readonly layers: readonly EngineLayer[];
  readonly times: Times | null;
  readonly model: ModelLayers | null;
  readonly errors: z.infer<typeof errorsSchema>['tensors'];
  readonly advice: z.infer<typeof adviceSchema> | null;
  readonly conversion: ConversionResult | null;
  readonly passport: Passport | null;
  readonly notes: readonly string[];
}

/** Files by what they have: the facts that belong to a side. */
interface Found {
  layers?: string;
  model?: string;
  times?: Times;
  bench?: BenchResult;
  conversion?: ConversionResult | null;
  errors?: Evidence['errors'];
  advice?: z.infer<typeof adviceSchema>;
}

export type ReadContext = Work & LayersOptions & { readonly kinds: readonly ReportKind[] };

/**
 * Reads one side. An engine of TensorRT-RTX needs no GPU: its layers are those of the compiled program in the plan. Another engine is loaded on the GPU, unless a file of
 * its layers is passed. Throws TF_USAGE for files that have no layers, TF_LAYERS_INVALID, TF_REPORT_INVALID, TF_TRTEXEC_EXPORT_INVALID, and what reading engines and models throws.
 */
export async function readSide(request: SideRequest, context: ReadContext): Promise<Evidence> {
  const found: Found = {};
  for (const file of request.from) Object.assign(found, await factsIn(file, context));
  if (statIfThere(request.file)?.isDirectory() === true) return ofRunRoot(request, found, context);
  return ofFile(request, request.file, found, context);
}

async function ofFile(
  request: SideRequest,
  file: string,
  found: Found,
  context: ReadContext,
): Promise<Evidence> {
  if (isEngineFile(file)) return ofEngine(request, file, found, context);
  if (found.layers !== undefined) {
    await layersOf(found.layers, context);
    throw new TrtforgeError('TF_USAGE', `${found.layers} has layers of an engine, and ${file} is none.`, {
      remedy: 'Pass the layers as A or B, and a model with --from.',
    });
  }
  if (file.toLowerCase().endsWith('.onnx')) {
    const model = readModelLayers(file, shapesOf(request, found, null));
    return evidence('onnx', request, found, { layers: model.layers, model });
  }
  const own = await factsIn(file, context);
  if (own.layers !== undefined) {
    const read = await layersOf(own.layers, context);
    return evidence('layers', request, found, { layers: read.layers, notes: notesOf(read) });
  }
  if (own.bench === undefined) throw notExplorable(file);
  const layers = (own.bench.layers?.layers ?? []).map(timedLayer);
  return evidence('bench', request, { ...own, ...found }, { layers });
}

const notExplorable = (file: string) =>
  new TrtforgeError('TF_USAGE', `${file} has no layers of its own.`, {
    remedy: 'Pass an engine, an ONNX model, a run root or a file of layers, and this file with --from.',
  });

async function ofEngine(
  request: SideRequest,
  file: string,
  found: Found,
  context: ReadContext,
): Promise<Evidence> {
  const passport = passportOf(file);
  const program = found.layers === undefined ? readPlanProgram(readPlanHeader(file)) : null;
  if (program === null) {
    const read = await layersOf(file, { ...context, from: found.layers });
    const kind = found.layers === undefined ? 'engine' : 'layers';
    return evidence(kind, request, found, { layers: read.layers, passport, notes: notesOf(read) });
  }
  const [first] = program.graphs;
  const isOfFirst = (each: (typeof program.graphs)[number]) =>
    String(each.architectures) === String(first?.architectures);
  const graphs = program.graphs.filter(isOfFirst);
  const profiles = Math.max(1, passport?.identity.document.recipe.profiles.length ?? 1);
  const perProfile = graphs.length % profiles === 0 ? graphs.length / profiles : graphs.length;
  const layers = graphs
    .flatMap(({ kernels }, index) =>
      kernels.map((kernel) => ({ kernel, profile: Math.floor(index / perProfile) })),
    )
    .map(({ kernel, profile }, index) => kernelLayer(kernel, profile, index));
  const note = `The layers are the kernels for ${first?.architectures.join(', ')} in the compiled program of the plan. Tactics are chosen on the GPU that runs it.`;
  return evidence('program', request, found, { layers, passport, notes: [note] });
}

/** The engine of a run, or its typed model where it has none. */
async function ofRunRoot(request: SideRequest, found: Found, context: ReadContext): Promise<Evidence> {
  const root = request.file;
  const result = forgeResultSchema.parse(readReport(root, [forgeReport]).result);
  const { engine, conversion, bench } = result;
  const model = conversion?.output ?? result.request.model;
  const all: Found = {
    conversion,
    model: placeIn(root, result, model),
    ...benchFacts(root, bench),
    ...found,
  };
  return ofFile(request, placeIn(root, result, engine ?? model), all, context);
}

/** A run root may have moved since. */
function placeIn(root: string, { runRoot }: ForgeResult, path: string): string {
  const inside = relative(runRoot, path);
  return inside.startsWith('..') || isAbsolute(inside) ? path : join(root, inside);
}

const benchFacts = (file: string, bench: BenchResult | null): Found =>
  bench === null || bench.layers === null ? {} : { bench, times: timesOf(file, bench, bench.layers) };

function timesOf(
  file: string,
  bench: BenchResult,
  { runs, layers }: NonNullable<BenchResult['layers']>,
): Times {
  const measuredMs = (bench.gpuMs ?? bench.endToEndMs)?.median ?? null;
  return { file, measuredMs, layers: layers.map(({ name, ms }) => ({ name, ms: ms * runs, runs })) };
}

/** What one file has, by its content. */
async function factsIn(file: string, { kinds }: ReadContext): Promise<Found> {
  if (file.toLowerCase().endsWith('.onnx')) return { model: file };
  const start = readText(file, LARGEST_BYTES, 'TF_LAYERS_INVALID').slice(0, 400);
  if (start.trimStart().startsWith('[')) {
    const { count, layers } = readExportedProfile(file);
    const times = layers.map(({ name, timeMs }) => ({ name, ms: timeMs, runs: count }));
    return { times: { file, measuredMs: null, layers: times } };
  }
  const schema = /^\s*\{\s*"schema":\s*"(trtforge\.[\w-]+)\//.exec(start)?.[1];
  if (schema === undefined || schema === 'trtforge.engine-layers') return { layers: file };
  const { result } = readReport(file, kinds);
  switch (schema) {
    case 'trtforge.bench': {
      const facts = benchFacts(file, benchResultSchema.parse(result));
      if (facts.times !== undefined) return facts;
      throw new TrtforgeError('TF_USAGE', `${file} has no times of layers.`, {
        remedy: 'Measure the engine again: `trtforge bench model.engine --layers --json`.',
      });
    }
    case 'trtforge.compare-layers':
      return { errors: errorsSchema.parse(result).tensors };
    case 'trtforge.convert-advise':
      return { advice: adviceSchema.parse(result) };
    default:
      throw notExplorable(file);
  }
}

/** The layers of the largest engines take some tens of MB. */
const LARGEST_BYTES = 128 << 20;

function evidence(
  kind: Side['kind'],
  request: SideRequest,
  found: Found,
  read: Pick<Evidence, 'layers'> & Partial<Evidence>,
): Evidence {
  const { file, from } = request;
  if (read.layers.length === 0)
    throw new TrtforgeError('TF_LAYERS_INVALID', `${file} lists no layer.`, {
      remedy: 'Pass an engine or a model that has one.',
    });
  const { times = null, errors = [], advice = null, conversion = null } = found;
  const passport = read.passport ?? null;
  const model =
    read.model ??
    (found.model === undefined ? null : readModelLayers(found.model, shapesOf(request, found, passport)));
  const notes = [...(read.notes ?? [])];
  if (model !== null && model.openSizes.length > 0)
    notes.push(
      `${model.file} leaves ${model.openSizes.slice(0, 3).join(', ')} open: FLOPs that depend on it are not known. Pass sizes with --shapes.`,
    );
  return { kind, file, from, ...read, times, model, errors, advice, conversion, passport, notes };
}

/** Passed shapes come first, then those of the measurement, then the optimum of the first profile. */
function shapesOf(request: SideRequest, { bench }: Found, passport: Passport | null): SideRequest['shapes'] {
  if (request.shapes.size > 0) return request.shapes;
  if (bench !== undefined) return new Map(bench.runs[0]!.shapes.map(({ name, shape }) => [name, shape]));
  const [profile = {}] = passport?.identity.document.recipe.profiles ?? [];
  return new Map(
    Object.entries(profile).flatMap(([name, { opt, values }]) => (values ? [] : [[name, opt] as const])),
  );
}

const notesOf = ({ findings }: LayersResult): string[] => findings.map(({ message }) => message);

/** Without one, what it would have stated is not known. */
function passportOf(file: string): Passport | null {
  try {
    return readPassport(file);
  } catch (error) {
    if (error instanceof TrtforgeError) return null;
    throw error;
  }
}

type BenchedLayer = NonNullable<BenchResult['layers']>['layers'][number];

const timedLayer = (
  { name, type, precision, tactic, onnxNodes }: BenchedLayer,
  index: number,
): EngineLayer => ({
  ...noLayer,
  ...{ index, name, type, precision, onnxNodes, copies: isCopy(name, type, tactic) },
  tactic: { name: tactic, value: null },
});

/** The compiler's names of weights. */
const CONSTANT = /^__mye\d+_?d?const$/;

function kernelLayer(kernel: ProgramKernel, profile: number, index: number): EngineLayer {
  const { kind, name, nodes, parts } = kernel;
  const [inputs = [], outputs = []] = [kernel.inputs, kernel.outputs].map((tensors) =>
    tensors.map((tensor) => plainTensor(tensor.name, tensor.dtype, tensor.shape)),
  );
  const isGenerated = kind === 'function' || kind === 'runtime_fusion';
  return {
    ...noLayer,
    ...{ index, profile, type: kind, outputs },
    name: name || kind,
    inputs: inputs.filter((tensor) => !CONSTANT.test(tensor.name)),
    tactic: { name: isGenerated ? name : null, value: null },
    precision: multiplications(kernel)[0]?.type ?? outputs[0]?.dtype ?? null,
    onnxNodes: [...nodes],
    // The compiler names a kernel by what is in it: one that only moves is called Mov.
    copies: kind === 'copy' || /^__myl_(?:Mov)+(?:_|$)/.test(name),
    weightBytes: inputs.reduce(
      (sum, tensor) => sum + (CONSTANT.test(tensor.name) ? (tensor.bytes ?? 0) : 0),
      0,
    ),
    outputBytes: totalBytes(outputs),
    attributes: parts.length === 0 ? {} : { parts: parts.map((part) => part.name || part.kind).join(', ') },
  };
}
