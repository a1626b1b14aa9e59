import { join } from 'node:path';
import { removeIfAllowed } from '../../../base/files/files.js';
import { makeScratch } from '../../../base/files/folders.js';
import { protectingInputs } from '../../../base/files/user-files.js';
import { plural } from '../../../base/text/quantity.js';
import { digestModelFile } from '../../../engines/identity/model-digest.js';
import { isEngineFile } from '../../../engines/plan/header.js';
import { describedInput } from '../../../engines/run/drawn-inputs.js';
import { TrtforgeError } from '../../../errors.js';
import { tensorReader } from '../../../formats/tensor/tensor-reader.js';
import { CandidateEngines, programOf } from '../../../quality/known-answer/candidate-engines.js';
import { errorMap } from '../../../quality/verify/error-map.js';
import { failedOutputs, judgeRuns, type RunsJudgement } from '../../../quality/verify/judge-runs.js';
import { checkRules } from '../../../quality/verify/judged.js';
import type { VerifyContext, VerifyRequest } from '../../../quality/verify/options.js';
import { precisionBetween } from '../../../quality/verify/precision.js';
import type { ErrorMap, VerifiedOutput, VerifyPrecision } from '../../../quality/verify/result.js';
import { type ReferenceRun, SampleRuns, type SideRun } from '../../../quality/verify/sample-runs.js';
import { unrepeatable } from '../../../quality/verify/stability.js';
import { packageVersion } from '../../../version.js';
import { writeChange } from '../conversion.js';
import { fusionGroups, innerTensors } from '../fusions.js';
import { inGroups } from '../groups.js';
import { type MadeTensor, madeTensors } from '../made-tensors.js';
import { writeMarked } from '../marked-model.js';
import { type ComparedTensor, type LayerComparison, lossOf } from './result.js';

/**
 * Compares the values inside two models on the same seeded inputs: every floating-point tensor that both have under one name, in graph order, by the limits
 * that `verify` has for outputs. An engine is built again with its tensors as outputs too, save for those inside of its kernels. Tensors become outputs of temporary copies of the models, in groups, so that memory does not grow with the model.
 * Throws TF_USAGE, TF_VERIFY_MISMATCH where nothing is common, and what opening, writing and running throw.
 */
export const compareLayers = (
  request: VerifyRequest,
  context: VerifyContext = {},
): Promise<LayerComparison> =>
  protectingInputs([request.reference, request.candidate], () => compare(request, context));

async function compare(request: VerifyRequest, context: VerifyContext): Promise<LayerComparison> {
  checkRules(request);
  assertModel(request.reference);
  const precision = request.precision ?? precisionBetween(request);
  const found = new Findings();
  const folder = makeScratch('layers');
  try {
    const engine = isEngineFile(request.candidate) ? await engineLayers(request, folder, context) : null;
    const model = engine?.model ?? request.candidate;
    const common = commonTensors(request, model);
    const tensors = common.tensors.filter(({ name }) => engine?.inside.has(name) !== true);
    const total = tensors.length;
    let builds = 0;
    let sides: Sides | undefined;
    const kept = () => [...(sides?.reference.outputs ?? []), ...(sides?.candidate.outputs ?? [])];
    for (const { group, done } of inGroups(tensors, kept)) {
      context.emit?.({ type: 'progress', phase: 'compare layers', done, total, detail: 'tensors' });
      const asked = await markedRequest(request, group, { model, engine, folder }, context.signal);
      if (engine !== null) builds++;
      const runs = new SampleRuns(asked, { ...context, emit: undefined }, sides?.reference.plan);
      // In place of the group before, whose outputs may be large: judging may run both again.
      sides = await runSides(asked, runs);
      found.add(group, sides, await judgedGroup(asked, precision, runs, sides));
    }
    if (sides === undefined) throw new TrtforgeError('TF_INTERNAL', 'No group of tensors was run.');
    const { plan, outputs } = sides.reference;
    const inside = common.tensors.length - tensors.length;
    return {
      schema: 'trtforge.compare-layers/1',
      version: packageVersion(),
      reference: request.reference,
      candidate: request.candidate,
      referenceBackend: sides.reference.backend,
      candidateBackend: sides.candidate.backend,
      precision,
      seed: request.seed ?? 0,
      samples: outputs.length,
      inputs: plan.inputs.map(describedInput),
      onlyReference: common.onlyReference,
      onlyCandidate: common.onlyCandidate,
      engine: engine && { builds, inside, outputsFail: found.outputsFail },
      ...found.summary(),
      repeat: null,
    };
  } finally {
    removeIfAllowed(folder);
  }
}

/** Throws TF_USAGE for an engine. */
function assertModel(reference: string): void {
  if (!isEngineFile(reference)) return;
  throw new TrtforgeError('TF_USAGE', `${reference} is an engine, which returns its outputs only.`, {
    remedy: 'Pass the ONNX model that it was built from.',
  });
}

/** Tensors of two models under one name, in the order of the reference's graph. */
interface CommonTensors {
  readonly tensors: readonly MadeTensor[];
  readonly onlyReference: number;
  readonly onlyCandidate: number;
}

/** Throws TF_VERIFY_MISMATCH where the models have no tensor in common, TF_USAGE for a tolerance of none of them. */
function commonTensors(
  { reference, candidate, atol = [], rtol = [] }: VerifyRequest,
  model: string,
): CommonTensors {
  const [theirs, ours] = [madeTensors(reference), madeTensors(model)];
  const own = new Set(ours.map(({ name }) => name));
  const tensors = theirs.filter(({ name }) => own.has(name));
  if (tensors.length === 0)
    throw new TrtforgeError(
      'TF_VERIFY_MISMATCH',
      `${candidate} and ${reference} have no floating-point tensor of one name, so no layer can be compared.`,
      {
        remedy:
          'Compare a model with the one that it was converted from: a conversion keeps the names of tensors, a new export may not.',
      },
    );
  // A misspelt name would silently leave its tensor to the usual limits.
  const known = new Set<string | null>([null, ...tensors.map(({ name }) => name)]);
  const wrong = [...atol, ...rtol].find(({ name }) => !known.has(name));
  if (wrong !== undefined)
    throw new TrtforgeError('TF_USAGE', `${reference} has no tensor ${wrong.name} that is compared.`, {
      remedy: 'Pass tolerances by the names of tensors that both models have, as --json lists them.',
    });
  return {
    tensors,
    onlyReference: theirs.length - tensors.length,
    onlyCandidate: ours.length - tensors.length,
  };
}

/** The request for copies of both models with a group of tensors as outputs too; an engine is built of its copy. Tolerances by the names of other tensors are left out. */
async function markedRequest(
  request: VerifyRequest,
  group: readonly MadeTensor[],
  { model, engine, folder }: CandidateLayers,
  signal: AbortSignal | undefined,
): Promise<VerifyRequest> {
  const reference = join(folder, 'reference.onnx');
  const marked = join(folder, 'candidate.onnx');
  const names = group.map(({ name }) => name);
  const outputs = engine === null ? 'dropped' : 'kept';
  await writeMarked(request.reference, reference, names, outputs, signal);
  await writeMarked(model, marked, names, outputs, signal);
  const candidate = (await engine?.build(marked)) ?? marked;
  const known = new Set<string | null>([null, ...names]);
  const own = (asked: VerifyRequest['atol']) => asked?.filter(({ name }) => known.has(name));
  return { ...request, reference, candidate, atol: own(request.atol), rtol: own(request.rtol) };
}

async function runSides(asked: VerifyRequest, runs: SampleRuns): Promise<Sides> {
  const reference = await runs.reference(() => {});
  return { reference, candidate: await runs.candidate(asked.candidate, reference, () => {}) };
}

async function judgedGroup(
  asked: VerifyRequest,
  precision: VerifyPrecision,
  runs: SampleRuns,
  sides: Sides,
): Promise<JudgedGroup> {
  const judgement = judgeRuns(asked, precision, sides.reference, sides.candidate);
  return { judgement, doubts: await unrepeatable(asked, precision, judgement, runs, sides) };
}

interface Sides {
  readonly reference: ReferenceRun;
  readonly candidate: SideRun;
}

interface JudgedGroup {
  readonly judgement: RunsJudgement;
  /** Outputs whose failure shows nothing, with the reason. */
  readonly doubts: ReadonlyMap<string, string>;
}

/** The results of the groups so far. */
class Findings {
  readonly #tensors: ComparedTensor[] = [];
  #first: ErrorMap | undefined;
  #worst: { readonly loss: number; readonly map: ErrorMap } | undefined;
  #outputsFail = true;

  /** Whether an output that the models have unmarked failed in each group. */
  get outputsFail(): boolean {
    return this.#outputsFail;
  }

  add(group: readonly MadeTensor[], sides: Sides, { judgement, doubts }: JudgedGroup): void {
    const { judged, broken } = judgement;
    const failed = new Set(failedOutputs(judgement).map(({ name }) => name));
    const added = new Set(group.flatMap(({ name, isOutput }) => (isOutput ? [] : [name])));
    this.#outputsFail &&= [...failed].some((name) => !added.has(name));
    for (const { name, node, op, dtype } of group) {
      const doubt = doubts.get(name);
      const output = judged.find((one) => one.output.name === name)?.output;
      const reasons = doubt ?? broken.find((one) => one.name === name)?.reason ?? output?.reasons ?? [];
      const tensor: ComparedTensor = {
        name,
        node,
        op,
        dtype,
        candidateDtype: output?.candidateDtype ?? dtype,
        shape: output?.shape ?? [...(sides.reference.outputs[0]?.get(name)?.shape ?? [])],
        outcome: doubt === undefined ? (output?.outcome ?? 'fail') : 'inconclusive',
        error: output === undefined ? null : errorOf(output),
        nonFinite: nonFiniteOf(output),
        reasons: typeof reasons === 'string' ? [reasons] : reasons,
      };
      this.#tensors.push(tensor);
      const map = () => errorMap(name, valuesOf(sides.candidate, name), valuesOf(sides.reference, name));
      const loss = lossOf(tensor);
      const isFailed = failed.has(name) && doubt === undefined && output !== undefined;
      if (isFailed) this.#first ??= map();
      if (loss > (this.#worst?.loss ?? 0)) this.#worst = { loss, map: map() };
    }
  }

  summary() {
    const tensors = this.#tensors;
    const failed = tensors.filter(({ outcome }) => outcome === 'fail');
    const [first] = failed;
    const maps = [this.#first, this.#worst?.map].filter((map) => map !== undefined);
    const outcome =
      first !== undefined
        ? ('fail' as const)
        : tensors.some((tensor) => tensor.outcome === 'pass')
          ? ('pass' as const)
          : ('inconclusive' as const);
    const headlines = {
      fail: `${failed.length} of ${plural(tensors.length, 'tensor')} diverge, ${first?.name} (${[first?.op, first?.node].join(' ').trim()}) first.`,
      pass: `${plural(tensors.length, 'tensor')} compared; none diverges.`,
      inconclusive: `${plural(tensors.length, 'tensor')} compared; none shows anything.`,
    };
    return {
      tensors,
      diverging: failed.length,
      firstDivergence: first?.name ?? null,
      worst: this.#worst?.map.tensor ?? null,
      maps: maps.filter(({ tensor }, index) => maps.findIndex((map) => map.tensor === tensor) === index),
      outcome,
      headline: headlines[outcome],
      reasons: first?.reasons ?? [],
    };
  }
}

function errorOf({ statistics }: VerifiedOutput): NonNullable<ComparedTensor['error']> {
  const amount = (name: string) => statistics.find((one) => one.name === name)?.amount ?? 'NaN';
  return {
    maxAbs: amount('max'),
    meanAbs: amount('mean'),
    maxRelative: amount('max relative'),
    sqnr: amount('SNR in dB'),
    cosine: amount('cosine similarity'),
  };
}

function nonFiniteOf(output: VerifiedOutput | undefined): ComparedTensor['nonFinite'] {
  const counts = output?.nonFinite;
  if (counts === undefined) return { candidate: 0, reference: 0, mismatching: 0 };
  return {
    candidate: counts.nanInCandidate + counts.infiniteInCandidate,
    reference: counts.nanInReference + counts.infiniteInReference,
    mismatching: counts.mismatching,
  };
}

const valuesOf = ({ outputs }: SideRun, name: string) =>
  outputs.flatMap((tensors) => tensors.get(name) ?? []).map(tensorReader);

/** The candidate as an ONNX model, its engine, and a folder for their copies. */
interface CandidateLayers {
  readonly model: string;
  /** null for a model. */
  readonly engine: EngineLayers | null;
  readonly folder: string;
}

/** An engine whose layers are compared: engines of its model are built with some of its tensors as outputs too. */
interface EngineLayers {
  /** The model that it was built from, as its recipe converts the reference. */
  readonly model: string;
  /** Tensors that lie inside of its kernels: as outputs they would make other kernels of them. Empty where its program cannot be read. */
  readonly inside: ReadonlySet<string>;
  /** Builds the engine of a model. */
  readonly build: (model: string) => Promise<string>;
}

/** Converts the reference where the engine's was. Throws TF_USAGE for an engine of another model, and what verifying it and converting throw; building throws what it throws. */
async function engineLayers(
  request: VerifyRequest,
  folder: string,
  context: VerifyContext,
): Promise<EngineLayers> {
  const { candidate, reference, device, toolchain, plugins } = request;
  const build = {
    device,
    toolchain: typeof toolchain === 'string' ? toolchain : undefined,
    plugins,
    store: false,
  } as const;
  const engines = await CandidateEngines.decide({ ...request, output: folder, build }, context);
  if (engines === null) throw new TrtforgeError('TF_INTERNAL', `${candidate} is not an engine.`);
  const digest = await digestModelFile(reference, context);
  const conversion = engines.conversion(digest);
  if (conversion === null && !engines.isOf(digest))
    throw new TrtforgeError('TF_USAGE', `${candidate} was built from another model than ${reference}.`, {
      remedy: 'Pass the model that the engine was built from: --against model.onnx',
    });
  const model = conversion === null ? reference : join(folder, 'typed.onnx');
  if (conversion !== null) await writeChange({ model: reference, ...conversion }, {}, model, context.signal);
  const program = programOf(engines.engine);
  const groups = program === null ? [] : fusionGroups(innerTensors(model), program);
  return {
    model,
    inside: new Set(groups.flatMap(({ tensors }) => tensors)),
    build: async (marked) => (await engines.build(marked, join(folder, 'candidate.engine'))).path,
  };
}
