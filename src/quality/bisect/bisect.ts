import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { sha256, sha256OfFile } from '../../base/files/digest.js';
import { makeFolder } from '../../base/files/folders.js';
import { protectingInputs } from '../../base/files/user-files.js';
import { shellLine } from '../../base/process/shell-quote.js';
import { plural } from '../../base/text/quantity.js';
import { canonicalJson } from '../../engines/identity/canonical-json.js';
import { conversionRecipe } from '../../engines/identity/conversion.js';
import { digestModelFile } from '../../engines/identity/model-digest.js';
import { sampleOf } from '../../engines/run/inputs.js';
import { openSession } from '../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../errors.js';
import { observeRanges } from '../../formats/precision/calibrate/observe-ranges.js';
import { type FormatId, formatIds } from '../../formats/precision/formats/index.js';
import type { ConversionOptions, ValueRange } from '../../formats/precision/options.js';
import { packageVersion } from '../../version.js';
import { checkRules } from '../verify/judged.js';
import { exactly } from '../verify/repair.js';
import { measure } from '../verify/result.js';
import { hasTypedInput, precisionOfFile } from '../verify/verify.js';
import { Candidates } from './candidates.js';
import { type Judge, openJudge } from './judge.js';
import { type Failing, reduceFailure } from './reduce.js';
import type { BisectContext, BisectRequest } from './request.js';
import type { BisectResult } from './result.js';
import { smallestPassing } from './search.js';
import { Trials } from './trials.js';
import { type Unit, unitsOf, withNodeNames } from './units.js';

const DEFAULT_BUDGET = 40;

/** What a search came to, before it is written down. */
interface Finding extends Pick<BisectResult, 'outcome' | 'cause' | 'headline' | 'isMinimal' | 'isConfirmed'> {
  readonly units: readonly Unit[];
  readonly reasons: readonly string[];
}

/**
 * Finds the smallest set of nodes that must stay FP32 for a bad 16-bit model to pass. Converts the reference with more and fewer nodes in FP32, judges each
 * candidate, and writes into `output` what it tried and the model that passes. What an earlier run tried for the same question counts.
 * Throws TF_BISECT_REFERENCE where the reference cannot judge, TF_USAGE for a candidate without 16-bit values, and what converting, opening and running throw.
 */
export async function bisectModel(
  request: BisectRequest,
  context: BisectContext = {},
): Promise<BisectResult> {
  const { reference, candidate, recording, files = [] } = request;
  const inputs = [reference, candidate, recording, ...files.map(({ path }) => path)];
  return protectingInputs(inputs, () => bisect(request, context));
}

async function bisect(request: BisectRequest, context: BisectContext): Promise<BisectResult> {
  const [started, startedAt] = [performance.now(), new Date().toISOString()];
  checkRules(request);
  const { reference, candidate, output, budget = DEFAULT_BUDGET } = request;
  const precision = formatOf(request);
  makeFolder(output);
  const work = mkdtempSync(join(output, 'work-'));
  try {
    const named = await withNodeNames(reference, join(output, 'named.onnx'), context.signal);
    const judge = await openJudge(request, precision, context);
    const first = await judge.judge(candidate);
    const options: ConversionOptions = {
      ...request.conversion,
      ...(hasTypedInput(first) ? { ioTypes: 'convert' as const } : {}),
    };
    const trials = new Trials(output, await questionOf(request, precision, options));
    const conversion = { model: named, precision, options };
    const path = join(work, 'candidate.onnx');
    const candidates = new Candidates(conversion, judge, trials, { path, budget, context });
    const finding: Finding =
      first.outcome === 'fail'
        ? await search(candidates, () => suspects(conversion, judge, request, context))
        : nothingFails(candidate, first.outcome, first.reasons);
    const keep = finding.units.map(({ name }) => name);
    const hasModel = finding.outcome === 'pass' && finding.cause !== 'none';
    const workaround = hasModel ? join(output, 'workaround.onnx') : null;
    if (workaround !== null) await candidates.write({ keep }, workaround);
    const failing = { ...conversion, nodes: keep, seed: judge.seed, sample: first.sample, work };
    const reduced =
      judge.reference === null || keep.length === 0 || !finding.isMinimal
        ? null
        : await reducedOf({ ...failing, reference: judge.reference }, candidates, request, context);
    return {
      schema: 'trtforge.bisect/1',
      version: packageVersion(),
      startedAt,
      totalMs: performance.now() - started,
      reference,
      candidate,
      precision,
      judge: judge.kind,
      backend: first.backend,
      seed: judge.seed,
      samples: judge.samples,
      ...withoutUnits(finding),
      reasons: [...finding.reasons],
      nodes: finding.units.map(({ name, op, peak, overflows }) => ({
        name,
        op,
        peak: peak === null ? null : measure(peak),
        overflows,
      })),
      candidates: trials.all.map(({ key, model, program, ...trial }) => trial),
      tried: candidates.tried,
      budget,
      workaround,
      convert: workaround === null ? null : convertLine(conversion, keep, workaround),
      reduced,
      repeat: null,
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The format of the candidate. Throws TF_USAGE where it has none: then no node can stay FP32 that is not. */
function formatOf({ candidate, precision }: BisectRequest): FormatId {
  const own = precision ?? precisionOfFile(candidate);
  if (own !== 'fp32') return own;
  throw new TrtforgeError(
    'TF_USAGE',
    `${candidate} computes in FP32, so no node of it can be the one to stay FP32.`,
    { remedy: `Pass a model converted to ${formatIds.join(' or ')}.` },
  );
}

const withoutUnits = ({ units: _, ...finding }: Finding) => finding;

function nothingFails(
  candidate: string,
  outcome: 'pass' | 'unresolved',
  reasons: readonly string[],
): Finding {
  const nothing = { cause: 'none', units: [], isMinimal: true, isConfirmed: null } as const;
  return outcome === 'pass'
    ? {
        ...nothing,
        outcome: 'pass',
        headline: `${candidate} passes: there is nothing to search.`,
        reasons: [],
      }
    : { ...nothing, outcome: 'inconclusive', headline: `${candidate} could not be judged.`, reasons };
}

/** Roles first, as the same node of every block fails as a rule; then the nodes of those roles. */
async function search(candidates: Candidates, suspects: () => Promise<readonly Unit[]>): Promise<Finding> {
  const none = { units: [], isMinimal: true, isConfirmed: null };
  const plain = await candidates.trial({ keep: [] });
  if (plain?.outcome === 'pass')
    return {
      ...none,
      outcome: 'pass',
      cause: 'conversion',
      headline: "trtforge's conversion passes with no further node in FP32.",
      reasons: [],
    };
  const units = await suspects();
  const all = await candidates.trial({ keep: namesOf(units) }, `all ${plural(units.length, 'node')} in FP32`);
  if (all?.outcome !== 'pass')
    return {
      ...none,
      isMinimal: false,
      outcome: 'inconclusive',
      cause: 'unknown',
      headline:
        all === null
          ? 'The budget ended before the search began.'
          : 'The conversion fails as well with every node in FP32, so none of them is the cause.',
      reasons: all?.reasons ?? [],
    };
  const roles = byRoles(units);
  const test = (group: readonly Unit[]) => candidates.outcome({ keep: namesOf(group) });
  const byRole = await smallestPassing(roles, (group) => test(group.flat()));
  const found = byRole.isMinimal
    ? await smallestPassing(byRole.changes.flat(), test)
    : { ...byRole, changes: byRole.changes.flat() };
  const others = units.filter((unit) => !found.changes.includes(unit));
  const alone =
    others.length === 0
      ? null
      : await candidates.trial({ keep: namesOf(others) }, 'every other node in FP32');
  return {
    outcome: 'pass',
    cause: 'nodes',
    units: found.changes,
    isMinimal: found.isMinimal,
    // Between FP32 neighbours light operators stay FP32 as well: then the failing nodes alone are no model of their own.
    isConfirmed:
      alone === null || alone.outcome === 'unresolved' || alone.same === all.id
        ? null
        : alone.outcome === 'fail',
    headline: headlineOf(found.changes, found.isMinimal),
    reasons: reasonsFor(found.changes),
  };
}

/** Units by their role, in the order of the first of each. */
function byRoles(units: readonly Unit[]): readonly (readonly Unit[])[] {
  const roles = new Map<string, Unit[]>();
  for (const unit of units) {
    const same = roles.get(unit.role);
    if (same === undefined) roles.set(unit.role, [unit]);
    else same.push(unit);
  }
  return [...roles.values()];
}

const namesOf = (units: readonly Unit[]) => units.map(({ name }) => name);

function headlineOf(units: readonly Unit[], isMinimal: boolean): string {
  const [only] = units;
  const which = units.length === 1 ? `${only?.op} "${only?.name}"` : plural(units.length, 'node');
  return isMinimal
    ? `It passes with ${which} in FP32, and with nothing less.`
    : `It passes with ${which} in FP32; the budget ended before the smallest set was found.`;
}

const reasonsFor = (units: readonly Unit[]): readonly string[] =>
  units
    .filter(({ overflows }) => overflows)
    .map(({ name, op, peak }) => `${op} "${name}" reads or makes ${peak?.toPrecision(4)}, which overflows.`);

/** A part of the conversion that fails by itself. */
async function reducedOf(
  failing: Omit<Failing, 'typed'>,
  candidates: Candidates,
  request: BisectRequest,
  context: BisectContext,
): Promise<BisectResult['reduced']> {
  const typed = join(failing.work, 'typed.onnx');
  await candidates.write({ keep: [] }, typed);
  return reduceFailure({ ...failing, typed }, request, context);
}

/** The nodes that the conversion computes in 16 bits, those first at which the reference leaves the range of the format. */
async function suspects(
  { model, precision, options }: { model: string; precision: FormatId; options: ConversionOptions },
  { reference, seed, samples }: Judge,
  { threads }: BisectRequest,
  context: BisectContext,
): Promise<readonly Unit[]> {
  const open = (path: string) => openSession(path, { threads }, context, context.backEnds);
  const inputs =
    reference === null
      ? []
      : Array.from({ length: samples }, (_, sample) => sampleOf(reference.plan, seed, sample));
  const ranges: ReadonlyMap<string, ValueRange> =
    inputs.length === 0
      ? new Map()
      : await observeRanges(model, () => inputs, open, { signal: context.signal });
  return unitsOf(model, precision, options, ranges);
}

/** Everything besides its changes that decides what becomes of a candidate. */
async function questionOf(
  request: BisectRequest,
  precision: FormatId,
  options: ConversionOptions,
): Promise<string> {
  const { reference, recording, check, seed, samples, atol, rtol, ranges, shapes, files = [] } = request;
  return sha256(
    canonicalJson({
      version: packageVersion(),
      reference: await digestModelFile(reference),
      conversion: conversionRecipe(precision, options),
      recording: recording === undefined ? null : sha256OfFile(recording),
      check: check ?? null,
      seed: seed ?? 0,
      samples: samples ?? null,
      limits: [atol ?? [], rtol ?? []],
      ranges: ranges ?? [],
      shapes: [...(shapes ?? [])],
      files: files.map(({ name, path }) => `${name} ${sha256OfFile(path)}`),
    }),
  );
}

function convertLine(
  { model, precision, options }: { model: string; precision: FormatId; options: ConversionOptions },
  keep: readonly string[],
  output: string,
): string | null {
  const { keepNodes = [], keepOps = [], convertOps = [], ioTypes, initMax, maxReductionDepth } = options;
  // What a calibration was read from is not known here.
  if (options.calibration !== undefined) return null;
  return shellLine([
    ...['trtforge', 'convert', model, '--precision', precision],
    ...(ioTypes === 'convert' ? ['--io-types', 'convert'] : []),
    ...[...keepOps].flatMap((op) => ['--keep-ops', op]),
    ...[...convertOps].flatMap((op) => ['--convert-ops', op]),
    ...(initMax === undefined ? [] : ['--init-max', String(initMax)]),
    ...(maxReductionDepth === undefined ? [] : ['--max-reduction-depth', String(maxReductionDepth)]),
    ...[...keepNodes, ...keep.map(exactly)].flatMap(({ source }) => ['--keep-nodes', source]),
    ...['-o', output],
  ]);
}
