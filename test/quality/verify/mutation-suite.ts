import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { calibrationOf } from '../../../src/engines/calibration/calibration.js';
import type { BackEnd } from '../../../src/engines/runtime/back-end.js';
import { TrtforgeError } from '../../../src/errors.js';
import { openModel, visitNodes, visitTensors, writeModel } from '../../../src/formats/onnx/index.js';
import { convertModel } from '../../../src/formats/precision/convert.js';
import type { FormatId } from '../../../src/formats/precision/formats/index.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { severityOf } from '../../../src/quality/verify/checks.js';
import type { VerifyRequest } from '../../../src/quality/verify/options.js';
import type { VerifyOutcome } from '../../../src/quality/verify/outcome.js';
import type { VerifyPrecision, VerifyResult } from '../../../src/quality/verify/result.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import type { Fault } from '../../models/faults.js';
import { type Kind, samplesOf, writeFault, writeVariant } from '../../models/kind.js';
import { pixelsOf } from '../../models/scenes.js';
import type { Arithmetic } from '../../models/variant-network.js';
import { inProcessBackEnd } from '../../support/in-process-back-end.js';
import { type Effect, effectOf } from './fault-effect.js';

/** Samples that ranges are observed on, and others to judge by where a kind names no other number. */
const SAMPLES = 16;
/** A seed that no network has. */
const SAMPLE_SEED = 9000;

/** One verdict of the suite. */
export interface Trial {
  readonly kind: string;
  readonly what: 'fault' | 'twin';
  /** Of the fault or the twin. */
  readonly name: string;
  /** At which tolerance, for faults whether the faulty model was converted as well, and whether on the user's data or on drawn samples. */
  readonly at: string;
  /** On real samples, by FP32 on ONNX Runtime; of a twin of its conversion. */
  readonly effect: Effect;
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

/** How a candidate is judged. */
interface Judging {
  readonly at: string;
  readonly precision?: VerifyPrecision;
  /** Whether on the user's data, where the seed draws nothing; else on drawn samples. */
  readonly onData: boolean;
  /** How many seeds show all; default all that are asked for. */
  readonly seeds?: number;
  /** A fault of a smaller effect may pass. */
  readonly visibleFrom: number;
}

/** A candidate, written when it is its turn. */
interface Candidate extends Pick<Trial, 'what' | 'name'> {
  readonly write: (path: string) => Promise<unknown>;
  readonly judgings: readonly Judging[];
}

/** Judges every fault and every healthy twin of a kind with `verifyModel`, by every seed. */
export async function judgeKind(kind: Kind, options: SuiteOptions = {}): Promise<Trial[]> {
  const { networkSeed = 0, seeds = [0], chooses = () => true, judge = byVerify } = options;
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-mutations-'));
  const count = kind.samples ?? SAMPLES;
  try {
    const calibration = await writeSamples(join(folder, 'samples'), kind, SAMPLE_SEED, SAMPLES);
    const heldOut = await writeSamples(join(folder, 'held-out'), kind, SAMPLE_SEED + 1, count);
    const candidatesOf = async (kind: Kind) => {
      const reference = join(folder, `${kind.name}.onnx`);
      await writeVariant(reference, kind, networkSeed);
      const candidates = [
        ...twinsOf(kind, networkSeed, reference, calibration),
        ...kind.faults.flatMap((fault) => candidatesOfFault(kind, networkSeed, fault, calibration)),
      ];
      return { kind, reference, candidates };
    };
    const own = await candidatesOf(kind);
    const { reference, candidates } = own;
    const measured = kind.unordered === undefined ? own : await candidatesOf(kind.unordered);
    const trials: Trial[] = [];
    const backEnd = inProcessBackEnd();
    const open = (path: string) => backEnd.open(path, {}, {});
    const samples = samplesOf(kind, SAMPLE_SEED + 1, count);
    /** By fault or twin, before a fault is converted. */
    const effects = new Map<string, Effect>();
    const candidate = join(folder, 'candidate.onnx');
    const effectIn = async (name: string): Promise<Effect> => {
      const known = effects.get(name);
      if (known !== undefined) return known;
      const alone = join(folder, 'measured.onnx');
      const of = measured.candidates.some((each) => each.name === name) ? measured : own;
      await of.candidates.find((each) => each.name === name)!.write(alone);
      const effect = await effectOf(await open(of.reference), await open(alone), samples, of.kind);
      backEnd.forget(alone);
      effects.set(name, effect);
      return effect;
    };
    for (const { write, judgings, ...planned } of candidates.filter(({ name }) => chooses(name))) {
      const effect = await effectIn(planned.name);
      // What a conversion makes NaN of is no twin.
      const trial = { ...planned, what: Number.isFinite(effect.error) ? planned.what : 'fault' } as const;
      if (trial.what === 'twin' && !isHealthy(effect)) {
        const reasons = [`off by ${effect.error.toPrecision(2)} of the output on real samples`];
        const noisy = { outcome: 'noisy', reasons, used: {} } as const;
        trials.push({ kind: kind.name, ...trial, at: judgings.at(-1)!.at, effect, seed: 0, ...noisy });
        continue;
      }
      await write(candidate);
      // Rows that are never among those kept show no fault on these samples.
      const isSeen =
        kind.unordered === undefined ||
        (await effectOf(await open(reference), await open(candidate), samples, kind)).error > 0;
      for (const { at, precision, onData, visibleFrom, seeds: most } of judgings) {
        const hidden = at.startsWith('int8 converted') ? HIDES * (await effectIn('int8')).error : 0;
        const isVisible = effect.error > Math.max(visibleFrom, hidden) && (isSeen || !onData);
        const isShown = onData || kind.unseenByNoise?.includes(planned.name) !== true;
        if (trial.what === 'fault' && !(isVisible && isShown)) continue;
        for (const seed of seeds.slice(0, onData ? 1 : most)) {
          const data = onData ? { files: [heldOut], preprocess: kind.preprocess } : undefined;
          const request = { reference, candidate, precision, seed, data };
          const judged = await judge(request, backEnd, trial).catch(unjudged);
          trials.push({ kind: kind.name, ...trial, at, effect, seed, ...judged });
        }
      }
      backEnd.forget(candidate);
      rmSync(candidate);
    }
    return trials;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** An error of 20 dB below the output, the least that Polygraphy's check of the SNR accepts: a conversion that is off by more, or by 5 % of the decisions, is no healthy twin. */
const isHealthy = ({ error, decisions }: Effect): boolean => error <= 0.1 && decisions <= 0.05;

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

/** An effect of this size must be seen: by INT8 one beyond its narrowest limit, 5.6 % and for few elements 6.8 %. */
const SEEN = 0.05;
const SEEN_BY_INT8 = 0.07;

/** A fault is hidden behind codes where it does less than this many times what rounding to them does to the healthy model: 10 dB. */
const HIDES = 3;

const seenBy = (precision: FormatId): number => (precision === 'int8' ? SEEN_BY_INT8 : SEEN);

function candidatesOfFault(kind: Kind, seed: number, fault: Fault, samples: string): Candidate[] {
  const write = (path: string) => writeFault(path, kind, seed, fault);
  const converted = (precision: FormatId) => async (path: string) => {
    await write(`${path}.fp32.onnx`);
    await convertedTo(precision, `${path}.fp32.onnx`, path, samples, kind);
  };
  const as = { what: 'fault', name: fault.name } as const;
  const plain: readonly Judging[] = [
    { at: 'fp32', precision: 'fp32', onData: false, seeds: 1, visibleFrom: 1e-3 },
    { at: 'fp16', precision: 'fp16', onData: false, seeds: 5, visibleFrom: SEEN },
    // Non-zeros x 0.7 are off by 0.3, which no format may be.
    { at: 'int8 on data', precision: 'int8', onData: true, visibleFrom: 0.3 },
  ];
  /** A fault is converted last, and its own error hides that of the conversion: few seeds say all. */
  const both = (precision: FormatId): readonly Judging[] => [
    { at: `${precision} converted`, onData: false, seeds: 2, visibleFrom: seenBy(precision) },
    { at: `${precision} converted on data`, onData: true, visibleFrom: seenBy(precision) },
  ];
  return [
    { ...as, judgings: plain, write },
    { ...as, judgings: both('fp16'), write: converted('fp16') },
    ...(kind.without?.includes('int8') ? [] : [{ ...as, judgings: both('int8'), write: converted('int8') }]),
  ];
}

const convertedTo = (
  precision: FormatId,
  model: string,
  path: string,
  samples: string,
  { preprocess, uncoded }: Kind,
) =>
  convertModel(model, path, {
    precision,
    allowUnconverted: true,
    ...(isQuantized(precision) && {
      keepNodes: uncoded,
      calibration: calibrationOf({ data: [samples], preprocess }),
    }),
  });

function twinsOf(kind: Kind, seed: number, reference: string, samples: string): Candidate[] {
  const twin = (name: string, write: Candidate['write'], more: Partial<Judging> = {}): Candidate[] => {
    const judging = { at: name, onData: false, visibleFrom: 0, ...more };
    const onData = { ...judging, at: `${name} on data`, onData: true };
    return kind.without?.includes(name) === true
      ? []
      : [
          {
            what: 'twin',
            name,
            write,
            judgings: [judging, ...(more.precision === undefined ? [onData] : [])],
          },
        ];
  };
  const variant = (arithmetic: Arithmetic) => (path: string) =>
    writeVariant(path, kind, seed, { arithmetic });
  return [
    ...(['fp16', 'bf16', 'int8', 'fp8'] as const).flatMap((precision) =>
      twin(precision, (path) => convertedTo(precision, reference, path, samples, kind)),
    ),
    ...twin('sums reordered', variant('reordered'), { precision: 'fp32' }),
    ...twin('optimized by ONNX Runtime', (path) => optimized(reference, path), { precision: 'fp32' }),
    ...twin('tf32', variant('tf32'), { precision: 'tf32' }),
    ...twin('fp16 weights', variant('fp16-weights'), { precision: 'fp16' }),
  ];
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

const isQuantized = (precision: string): boolean => ['int8', 'fp8'].includes(precision);

/** A folder as users have it: pictures of a model that takes some, else one npz a sample. */
async function writeSamples(folder: string, kind: Kind, seed: number, count: number): Promise<string> {
  mkdirSync(folder);
  for (const [index, sample] of samplesOf(kind, seed, count).entries())
    if (kind.preprocess === undefined) writeNpz(join(folder, `${index}.npz`), sample);
    else {
      const [picture] = sample.values();
      const [, , height, width] = picture!.shape;
      const raw = { width: width!, height: height!, channels: 3 } as const;
      await sharp(pixelsOf(picture!), { raw })
        .png()
        .toFile(join(folder, `${index}.png`));
    }
  return folder;
}

const OUTCOMES = ['fail', 'inconclusive', 'pass', 'error', 'noisy'] as const;

/** What a suite promises and does not hold: faults that pass, twins that fail, outcomes that turn with the seed. Noise decides at one seed and not at another. */
export function brokenPromises(trials: readonly Trial[]): string[] {
  const broken = trials
    .filter(({ what, outcome }) => outcome === 'error' || outcome === (what === 'fault' ? 'pass' : 'fail'))
    .map((trial) => `${describe(trial)}, seed ${trial.seed}: ${trial.outcome}`);
  const changing = [...groupedBy(trials, describe)].filter(
    ([, group]) =>
      new Set(group.map(({ outcome }) => outcome).filter((one) => one !== 'inconclusive')).size > 1,
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

export const isOnData = ({ at }: Pick<Trial, 'at'>): boolean => at.endsWith('on data');

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

/** Faults by the size of their effect, from which on they are large. */
const LARGE = 0.14;

/** A line a kind, and one for faults of small and of large effects; in each cell how many failed, were inconclusive, passed, were not judged for an error, and were not healthy. */
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
  const sized = (isLarge: boolean) =>
    trials.filter(({ what, effect }) => what === 'fault' && effect.error >= LARGE === isLarge);
  const rows = [
    ['kind', ...heads.map(({ what, at }) => `${what}s ${at}`)],
    heads.map(() => '---').concat('---'),
    ...kinds.map(([name, of]) => row(name, of)),
    ...(kinds.length > 1 ? [row('all', trials)] : []),
    row(`effects below ${LARGE}`, sized(false)),
    row(`effects from ${LARGE}`, sized(true)),
  ];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
