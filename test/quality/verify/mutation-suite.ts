import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { calibrationOf } from '../../../src/engines/calibration/calibration.js';
import type { BackEnd } from '../../../src/engines/runtime/back-end.js';
import { TrtforgeError } from '../../../src/errors.js';
import { openModel, visitNodes, visitTensors, writeModel } from '../../../src/formats/onnx/index.js';
import { convertModel } from '../../../src/formats/precision/convert.js';
import type { FormatId } from '../../../src/formats/precision/formats/index.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { severityOf } from '../../../src/quality/verify/checks.js';
import type { VerifyOutcome } from '../../../src/quality/verify/outcome.js';
import type { VerifyRequest } from '../../../src/quality/verify/request.js';
import type { VerifyPrecision, VerifyResult } from '../../../src/quality/verify/result.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import type { Fault } from '../../models/faults.js';
import { type Kind, samplesOf, writeFault, writeVariant } from '../../models/kind.js';
import { inProcessBackEnd } from '../../support/in-process-back-end.js';
import { effectOf } from './fault-effect.js';

/** Samples that ranges are observed on. */
const CALIBRATION_SAMPLES = 16;
/** A seed that no network has. */
const SAMPLE_SEED = 9000;

/** One verdict of the suite. */
export interface Trial {
  readonly kind: string;
  readonly what: 'fault' | 'twin';
  /** Of the fault or the twin. */
  readonly name: string;
  /** At which tolerance, and for faults whether the faulty model was converted as well. */
  readonly at: string;
  readonly seed: number;
  /** `error` where nothing was judged, `noisy` for a twin that is not healthy. */
  readonly outcome: VerifyOutcome | 'error' | 'noisy';
  readonly reasons: readonly string[];
  /** By output and check: what was measured, in shares of the limit. */
  readonly used: Readonly<Record<string, number>>;
}

export interface SuiteOptions {
  /** Of the network's weights; default 0. */
  readonly networkSeed?: number;
  /** Of the verification; default 0 alone. */
  readonly seeds?: readonly number[];
  /** Which faults and twins; default all. */
  readonly chooses?: (name: string) => boolean;
  /** Default: `verifyModel`. */
  readonly judge?: (request: VerifyRequest, backEnd: BackEnd, trial: Pick<Trial, 'name'>) => Promise<Judged>;
}

/** A candidate, written when it is its turn, and the tolerances it is judged at. */
interface Candidate extends Pick<Trial, 'what' | 'name'> {
  readonly write: (path: string) => Promise<unknown>;
  readonly at: readonly (readonly [at: string, precision: VerifyPrecision | undefined])[];
}

/** Judges every fault and every healthy twin of a kind with `verifyModel`, by every seed. */
export async function judgeKind(kind: Kind, options: SuiteOptions = {}): Promise<Trial[]> {
  const { networkSeed = 0, seeds = [0], chooses = () => true, judge = byVerify } = options;
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-mutations-'));
  try {
    const calibration = writeSamples(join(folder, 'samples'), kind, SAMPLE_SEED);
    const heldOut = writeSamples(join(folder, 'held-out'), kind, SAMPLE_SEED + 1);
    const candidatesOf = async (kind: Kind) => {
      const reference = join(folder, `${kind.name}.onnx`);
      await writeVariant(reference, kind, networkSeed);
      const candidates = [
        ...kind.faults.flatMap((fault) => candidatesOfFault(kind, networkSeed, fault)),
        ...twinsOf(kind, networkSeed, reference, calibration),
      ].filter(({ name }) => chooses(name));
      return { kind, reference, candidates };
    };
    const { reference, candidates } = await candidatesOf(kind);
    const measured = await candidatesOf(kind.unordered ?? kind);
    const trials: Trial[] = [];
    const backEnd = inProcessBackEnd();
    const open = (path: string) => backEnd.open(path, {}, {});
    const samples = samplesOf(kind, SAMPLE_SEED + 1, CALIBRATION_SAMPLES);
    /** By fault or twin, before anything is converted. */
    const effects = new Map<string, number>();
    for (const { write, at, ...trial } of candidates) {
      const candidate = join(folder, 'candidate.onnx');
      if (!effects.has(trial.name)) {
        await measured.candidates.find(({ name }) => name === trial.name)!.write(candidate);
        const sides = [await open(measured.reference), await open(candidate)] as const;
        effects.set(trial.name, await effectOf(...sides, samples, measured.kind));
        backEnd.forget(candidate);
      }
      const effect = effects.get(trial.name)!;
      if (trial.what === 'twin' && effect > HEALTHY) {
        const reason = `off by ${effect.toPrecision(2)} of the output on real samples`;
        const noisy = { outcome: 'noisy', reasons: [reason], used: {} } as const;
        trials.push({ kind: kind.name, ...trial, at: trial.name, seed: 0, ...noisy });
        continue;
      }
      await write(candidate);
      // Rows that are never among those kept show no fault on these samples.
      const isSeen =
        kind.unordered === undefined ||
        (await effectOf(await open(reference), await open(candidate), samples, kind)) > 0;
      const isJudged = ([name, of]: Candidate['at'][number]) =>
        trial.what === 'twin' || (effect > visibleAt(of) && (isSeen || !isQuantized(name)));
      for (const [name, precision] of at.filter(isJudged))
        for (const seed of seeds.slice(0, seedsAt(name))) {
          const data = isQuantized(name) ? { files: [heldOut] } : undefined;
          const request = { reference, candidate, precision, seed, data };
          const judged = await judge(request, backEnd, trial).catch(unjudged);
          trials.push({ kind: kind.name, ...trial, at: name, seed, ...judged });
        }
      backEnd.forget(candidate);
      rmSync(candidate);
    }
    return trials;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The effect from which on a fault is one at a tolerance; below it a healthy model is off as far. Non-zeros x 0.7 are off by 0.3, which no format may be. */
const visibleAt = (precision: VerifyPrecision | undefined): number =>
  ({ fp32: 1e-3, int8: 0.3 })[precision as string] ?? 0.03;

/** An error of 20 dB below the output, the least that Polygraphy's check of the SNR accepts: a conversion that is off by more is no healthy twin, and no fault that all must see. */
const HEALTHY = 0.1;

export type Judged = Pick<Trial, 'outcome' | 'reasons' | 'used'>;

const byVerify = async (request: VerifyRequest, backEnd: BackEnd): Promise<Judged> =>
  ofResult(await verifyModel(request, { backEnds: [backEnd] }));

const ofResult = ({ outcome, reasons, outputs }: VerifyResult): Judged => ({
  outcome,
  reasons,
  used: usedOf(outputs),
});

const unjudged = (error: unknown): Judged => {
  if (!(error instanceof TrtforgeError)) throw error;
  return { outcome: 'error', reasons: [`${error.code}: ${error.message}`], used: {} };
};

function candidatesOfFault(kind: Kind, seed: number, fault: Fault): Candidate[] {
  const write = (path: string) => writeFault(path, kind, seed, fault);
  const converted = async (path: string) => {
    await write(`${path}.fp32.onnx`);
    await convertModel(`${path}.fp32.onnx`, path, { precision: 'fp16' });
  };
  const as = { what: 'fault', name: fault.name } as const;
  const plain = (['fp32', 'fp16', 'int8'] as const).map((precision) => [precision, precision] as const);
  return [
    { ...as, at: plain, write },
    { ...as, at: [['fp16 converted', undefined]], write: converted },
  ];
}

function twinsOf(kind: Kind, seed: number, reference: string, samples: string): Candidate[] {
  const converted = (precision: FormatId) => ({
    name: precision,
    precision: undefined,
    write: (path: string) =>
      convertModel(reference, path, {
        precision,
        allowUnconverted: true,
        ...(['int8', 'fp8'].includes(precision) && { calibration: calibrationOf({ data: [samples] }) }),
      }),
  });
  const twins: (Pick<Candidate, 'name' | 'write'> & { readonly precision: VerifyPrecision | undefined })[] = [
    ...(['fp16', 'bf16', 'int8', 'fp8'] as const).map(converted),
    {
      name: 'sums reordered',
      precision: 'fp32',
      write: (path) => writeVariant(path, kind, seed, { arithmetic: 'reordered' }),
    },
    { name: 'optimized by ONNX Runtime', precision: 'fp32', write: (path) => optimized(reference, path) },
    {
      name: 'tf32',
      precision: 'tf32',
      write: (path) => writeVariant(path, kind, seed, { arithmetic: 'tf32' }),
    },
    {
      name: 'fp16 weights',
      precision: 'fp16',
      write: (path) => writeVariant(path, kind, seed, { arithmetic: 'fp16-weights' }),
    },
  ];
  return twins
    .filter(({ name }) => kind.without?.includes(name) !== true)
    .map(({ precision, ...twin }) => ({ ...twin, what: 'twin', at: [[twin.name, precision]] }));
}

/** The model as ONNX Runtime rewrites it: normalizations in the convolutions before them, constants folded. Its own names get others: it would make them again. */
async function optimized(model: string, path: string): Promise<void> {
  const { InferenceSession } = await import('onnxruntime-node');
  const session = await InferenceSession.create(model, {
    graphOptimizationLevel: 'basic',
    optimizedModelFilePath: `${path}.raw.onnx`,
    logSeverityLevel: 3,
  });
  await session.release();
  const written = openModel(`${path}.raw.onnx`);
  const weights = new Set([...visitTensors(written.proto)].map(({ tensor }) => tensor.name));
  const renamed = (name: string) => (weights.has(name) ? `optimized/${name}` : name);
  for (const { node } of visitNodes(written.proto)) node.input = node.input.map(renamed);
  for (const { tensor } of visitTensors(written.proto))
    if (tensor.name !== '') tensor.name = renamed(tensor.name);
  await writeModel(written, path);
  written.close();
}

const usedOf = (outputs: VerifyResult['outputs']): Trial['used'] =>
  Object.fromEntries(
    outputs.flatMap(({ name, checks }) =>
      checks.map((check) => [
        `${name} ${check.statistic}${check.sample === undefined ? '' : ' alone'}`,
        Number(severityOf(check).toPrecision(3)),
      ]),
    ),
  );

/** Whoever quantizes has samples, and then the seed draws nothing. */
const isQuantized = (at: string): boolean => at.startsWith('int8') || at.startsWith('fp8');

/** How many seeds say all: a fault is converted last, and its own error hides that of the conversion. */
const seedsAt = (at: string): number =>
  isQuantized(at) ? 1 : at === 'fp16 converted' ? 2 : Number.POSITIVE_INFINITY;

/** A folder of one npz a sample. */
function writeSamples(folder: string, kind: Kind, seed: number): string {
  mkdirSync(folder);
  samplesOf(kind, seed, CALIBRATION_SAMPLES).forEach((sample, index) => {
    writeNpz(join(folder, `${index}.npz`), sample);
  });
  return folder;
}

const OUTCOMES = ['fail', 'inconclusive', 'pass', 'error', 'noisy'] as const;

/** What a suite promises and does not hold: faults that pass, twins that fail, outcomes that depend on the seed. */
export function brokenPromises(trials: readonly Trial[]): string[] {
  const broken = trials
    .filter(({ what, outcome }) => outcome === 'error' || outcome === (what === 'fault' ? 'pass' : 'fail'))
    .map((trial) => `${describe(trial)}, seed ${trial.seed}: ${trial.outcome}`);
  const changing = [...groupedBy(trials, describe)].filter(
    ([, group]) => new Set(group.map(({ outcome }) => outcome)).size > 1,
  );
  return [...broken, ...changing.map(([name, group]) => `${name}: ${countsOf(group)}, by seed`)];
}

function groupedBy(trials: readonly Trial[], keyOf: (trial: Trial) => string): ReadonlyMap<string, Trial[]> {
  const groups = new Map<string, Trial[]>();
  for (const trial of trials) groups.set(keyOf(trial), [...(groups.get(keyOf(trial)) ?? []), trial]);
  return groups;
}

const describe = ({ kind, what, name, at }: Trial): string =>
  `${kind}: ${what} "${name}"${name === at ? '' : ` at ${at}`}`;

/** The share of twins that are inconclusive or not healthy. */
export const undecidedTwins = (trials: readonly Trial[]): number => {
  const twins = trials.filter(({ what }) => what === 'twin');
  return (
    twins.filter(({ outcome }) => outcome === 'inconclusive' || outcome === 'noisy').length /
    Math.max(1, twins.length)
  );
};

const countsOf = (trials: readonly Trial[]): string =>
  OUTCOMES.map((outcome) => trials.filter((trial) => trial.outcome === outcome).length)
    .join('/')
    .replace(/(\/0){1,2}$/, '');

/** A line a kind, in each cell how many failed, were inconclusive, passed, were not judged for an error, and were not healthy. */
export function suiteTable(trials: readonly Trial[]): string {
  const columns = (what: Trial['what']) => [
    ...new Set(trials.filter((trial) => trial.what === what).map(({ at }) => at)),
  ];
  const heads = (['fault', 'twin'] as const).flatMap((what) => columns(what).map((at) => ({ what, at })));
  const kinds = [...groupedBy(trials, ({ kind }) => kind)];
  const row = (name: string, of: readonly Trial[]) => [
    name,
    ...heads.map(({ what, at }) => countsOf(of.filter((one) => one.what === what && one.at === at))),
  ];
  const rows = [
    ['kind', ...heads.map(({ what, at }) => `${what}s ${at}`)],
    heads.map(() => '---').concat('---'),
    ...kinds.map(([name, of]) => row(name, of)),
    ...(kinds.length > 1 ? [row('all', trials)] : []),
  ];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
