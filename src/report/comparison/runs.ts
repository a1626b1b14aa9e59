import { shellLine, shellWords } from '../../base/text/shell-line.js';
import { differencesOf } from '../../engines/identity/identity.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import { isOfDecisions, severityOf } from '../../quality/verify/checks.js';
import { onSamples, verifyHeadline } from '../../quality/verify/headline.js';
import type { VerifiedOutput, VerifyResult } from '../../quality/verify/result.js';
import type { ForgeResult } from '../forge-result.js';
import { modelBytes, precisionLabel } from '../sentences.js';
import { type Comparable, comparedPart, differ, fileSide, lacks, type Names, row } from './compare.js';
import { type Decision, decided } from './decision.js';
import type { ComparedPair, ComparedPart } from './result.js';
import { gpuTimes, speedPart } from './speed.js';

/** Runs of `forge` side by side. Figures that were measured in another way, on another machine or of another model get no ratio, and the reason. */
export const comparableRuns: Comparable<ForgeResult> = {
  side: ({ path, result }) => {
    const { startedAt, version, request, verdict, engine, build } = result;
    const { outcome, headline } = verdict;
    return {
      run: path,
      startedAt,
      version,
      ...request,
      outcome,
      headline,
      engine,
      identity: build?.identity ?? null,
    };
  },
  pair: (a, b, names) => ({
    identity: identityDifferences(a, b),
    environment: environmentDifferences(a, b),
    parts: [...modelParts(a, b, names)],
  }),
  decide: decideRuns,
};

/** The differences between the identities of two engines; null where a run has none. */
export function identityDifferences(
  { build: a }: ForgeResult,
  { build: b }: ForgeResult,
): ComparedPair['identity'] {
  if (a === null || b === null) return null;
  const differences = differencesOf(a.passport.identity.document, b.passport.identity.document);
  return { equal: a.identity === b.identity, differences: [...differences] };
}

export function environmentDifferences(
  ...[a, b]: readonly [Pick<ForgeResult, 'environment'>, Pick<ForgeResult, 'environment'>]
): ComparedPair['environment'] {
  const [one, other] = [a, b].map(({ environment }) =>
    Object.fromEntries(environment.map(({ name, text }) => [name, text])),
  );
  return [...differencesOf(one, other)];
}

/** The figures of one model in two runs; `of` names it among several. */
export function modelParts(
  a: ForgeResult,
  b: ForgeResult,
  names: Names,
  of: string | null = null,
): readonly ComparedPart[] {
  const parts = [enginePart, buildPart, precisionPart, accuracyPart].map((partOf) => partOf(a, b, names));
  return [...parts, speedPart(a.bench, b.bench, names, [modelsDiffer(a, b)])].flatMap((part) =>
    part === null ? [] : { ...part, of },
  );
}

/** Digests decide where both runs have an engine, else what the models declare. */
function modelsDiffer(a: ForgeResult, b: ForgeResult): string | null {
  const of = ({ build, model }: ForgeResult, byDigest: boolean) =>
    byDigest
      ? build?.passport.identity.document.model
      : model && JSON.stringify([model.nodesTotal, model.parameters, model.inputs, model.outputs]);
  const byDigest = a.build !== null && b.build !== null;
  return of(a, byDigest) === of(b, byDigest) ? null : 'The models differ in graph or weights.';
}

/** Only an identity has the digest of the weights. */
const unknownWeights = (a: ForgeResult, b: ForgeResult): string | null =>
  a.build !== null && b.build !== null
    ? null
    : 'Not both runs have an engine, so that only the structure of the models is known to be equal, not their weights.';

/** Rows of the engine that are drawn: the whole, and what it is made of. */
export const PLAN_SIZE = 'size of the plan';
export const PLAN_ROWS = {
  weightsBytes: 'weights in the plan',
  kernelsBytes: 'kernels in the plan',
  programBytes: 'program in the plan',
} as const;

type PartOf = (a: ForgeResult, b: ForgeResult, names: Names) => ComparedPart | null;

const enginePart: PartOf = ({ build: a }, { build: b }, names) => {
  const [planA, planB] = [a?.passport.plan, b?.passport.plan];
  return comparedPart(
    'engine',
    [
      row(PLAN_SIZE, 'bytes', planA?.bytes, planB?.bytes),
      ...Object.entries(PLAN_ROWS).map(([name, what]) => {
        const key = name as keyof typeof PLAN_ROWS;
        return row(what, 'bytes', planA?.contents?.[key], planB?.contents?.[key]);
      }),
      row('layers of the network', 'count', planA?.layers, planB?.layers),
    ],
    [lacks('engine', a, b, names)],
  );
};

const buildPart: PartOf = (runA, runB, names) => {
  const [a, b] = [runA.build?.passport.built, runB.build?.passport.built];
  const machineOf = ({ gpu }: NonNullable<typeof a>, { build, environment }: ForgeResult) => {
    if (gpu !== null) return gpu;
    const processor = environment.find(({ name }) => name === 'processor')?.text;
    return build?.source === 'built' && processor !== undefined ? processor : 'an unknown machine';
  };
  return comparedPart(
    'build',
    [
      row('build time in TensorRT', 'ms', a?.ms, b?.ms),
      row('time of the conversion', 'ms', a?.conversionMs, b?.conversionMs),
      row('peak memory', 'bytes', a?.peakMemoryBytes, b?.peakMemoryBytes),
    ],
    a === undefined || b === undefined
      ? [lacks('engine', a, b, names)]
      : [
          differ('The engines were built on different machines', machineOf(a, runA), machineOf(b, runB)),
          differ('The timing caches differ', a.timingCache, b.timingCache),
        ],
  );
};

const precisionPart: PartOf = (a, b, names) => {
  const types = [a, b].map(({ build }) => {
    const counts = new Map<string, number>();
    for (const { types: ofOperator } of build?.passport.plan.precisions?.operators ?? [])
      for (const [type, count] of Object.entries(ofOperator))
        counts.set(type, (counts.get(type) ?? 0) + count);
    return counts;
  });
  const [typesA, typesB] = types;
  return comparedPart(
    'precision',
    [
      row('nodes converted', 'count', a.conversion?.nodes.converted, b.conversion?.nodes.converted),
      row('nodes kept in FP32', 'count', a.conversion?.nodes.kept, b.conversion?.nodes.kept),
      row('size of the converted model', 'bytes', a.conversion?.bytes.after, b.conversion?.bytes.after),
      ...[...new Set(types.flatMap((counts) => [...counts.keys()]))].map((type) =>
        row(`layers in ${type}`, 'count', layersIn(typesA, type), layersIn(typesB, type)),
      ),
    ],
    [lacks('conversion', a.conversion, b.conversion, names), modelsDiffer(a, b)],
    [unknownWeights(a, b)],
  );
};

/** Null where the plan does not state what its layers compute in. */
const layersIn = (counts: ReadonlyMap<string, number> | undefined, type: string): number | null =>
  counts === undefined || counts.size === 0 ? null : (counts.get(type) ?? 0);

/** The engines against the original where all were run, else the typed models. */
function comparedWithOriginal(runs: readonly ForgeResult[]) {
  const isOfEngines = runs.every(({ engineVerification }) => engineVerification !== null);
  const verifications = runs.map(({ engineVerification, verification }) =>
    isOfEngines ? engineVerification : verification,
  );
  return { isOfEngines, verifications };
}

const accuracyPart: PartOf = (runA, runB, names) => {
  const { isOfEngines, verifications } = comparedWithOriginal([runA, runB]);
  const [a = null, b = null] = verifications;
  return comparedPart(
    'accuracy',
    errorRows(a, b),
    a === null || b === null
      ? [lacks('comparison with the original', a, b, names)]
      : [modelsDiffer(runA, runB), samplesDiffer(runA, runB, otherSamples(a, b), names)],
    a === null || b === null
      ? []
      : [
          isOfEngines ? null : 'Errors of the typed models: not both engines were run.',
          unknownWeights(runA, runB),
        ],
  );
};

/** Results of `verify` side by side: errors against one reference on the same samples. */
export const comparableVerifications: Comparable<VerifyResult> = {
  side: ({ path, result }) => ({
    ...fileSide(path, result.candidate),
    precision: result.precision,
    outcome: result.outcome,
    headline: verifyHeadline(result),
  }),
  pair: (a, b) => {
    const apart = [differ('The references differ', a.reference, b.reference), otherSamples(a, b)];
    const part = comparedPart('accuracy', errorRows(a, b), apart);
    return { identity: null, environment: [], parts: part === null ? [] : [part] };
  },
};

/** Errors of every output, and the share of its decisions that turned. */
function errorRows(a: VerifyResult | null, b: VerifyResult | null) {
  const outputsOf = (side: VerifyResult | null) =>
    new Map(side?.outputs.map((output) => [output.name, output]));
  const [outputsA, outputsB] = [outputsOf(a), outputsOf(b)];
  const amount = (output: VerifiedOutput | undefined, statistic: string) =>
    output?.statistics.find(({ name }) => name === statistic)?.amount;
  return [...new Set([...outputsA.keys(), ...outputsB.keys()])].flatMap((name) => {
    const [one, other] = [outputsA.get(name), outputsB.get(name)];
    const turned = [one, other].flatMap((side) => side?.checks.map(({ statistic }) => statistic) ?? []);
    return [
      ...['max', 'mean'].map((statistic) =>
        row(`${name}: ${statistic} error`, 'error', amount(one, statistic), amount(other, statistic)),
      ),
      ...[...new Set(turned.filter(isOfDecisions))].map((statistic) =>
        row(`${name}: ${statistic}`, 'share', measuredBy(one, statistic), measuredBy(other, statistic)),
      ),
    ];
  });
}

const measuredBy = (output: VerifiedOutput | undefined, statistic: string) =>
  output?.checks.find((check) => check.statistic === statistic)?.measured;

/** That not both were judged on the same samples, with both. */
function otherSamples(a: VerifyResult, b: VerifyResult): string | null {
  const of = ({ seed, samples, samplesFrom, inputs }: VerifyResult) =>
    JSON.stringify([samplesFrom?.samples ?? [seed, samples], inputs]);
  return of(a) === of(b)
    ? null
    : `The samples differ: ${onSamples(a)} (${a.samples}) and ${onSamples(b)} (${b.samples}).`;
}

/** A figure, or why there is none. */
type Known = number | string;

const numberOf = (figure: Known): number | null => (typeof figure === 'number' ? figure : null);

/** What the runs cost, and how far they are from the original; null where fewer than two have both. */
function decideRuns(runs: readonly ForgeResult[], letters: readonly string[]): Decision | null {
  const costs = costsOf(runs, letters).find(({ figures }) => figures.filter(Number.isFinite).length > 1);
  const errors = errorsOf(runs, letters);
  if (costs === undefined || errors === null) return null;
  const points = runs.map(({ request, verdict, error: stopped }, at) => {
    const figures = [costs.figures[at]!, errors.figures[at]!] as const;
    const [cost, error] = figures.map(numberOf) as [number | null, number | null];
    return {
      name: `${letters[at]} ${precisionLabel(request.precision)}`,
      outcome: verdict.outcome,
      ...{ cost, error },
      missing: [
        ...new Set(
          figures.flatMap((why) => (typeof why === 'number' ? [] : stopped ? verdict.headline : why)),
        ),
      ],
    };
  });
  const whole = points.filter(({ cost, error }) => cost !== null && error !== null);
  const { figures: _costs, ...cost } = costs;
  const { figures: _errors, ...error } = errors;
  return whole.length < 2 ? null : decided({ cost, error }, points);
}

/** In the order in which they decide. */
function costsOf(runs: readonly ForgeResult[], letters: readonly string[]) {
  const sizes = (what: string, bytesOf: (run: ForgeResult) => Known) => ({
    ...{ what, unit: 'bytes' as const, figures: runs.map(bytesOf) },
  });
  const times = gpuTimes(
    runs.map(({ bench }) => bench),
    letters,
  );
  return [
    ...(times === null ? [] : [times]),
    sizes('size of the plan', ({ build }) => build?.passport.plan.bytes ?? 'It has no engine.'),
    sizes('size of the model', ({ conversion, model }) =>
      conversion === null
        ? model === null
          ? 'Its model was not read.'
          : modelBytes(model)
        : conversion.bytes.after,
    ),
  ];
}

/** By decisions where every comparison has some, else by limits. */
function errorsOf(runs: readonly ForgeResult[], letters: readonly string[]) {
  const { verifications } = comparedWithOriginal(runs);
  const first = verifications.findIndex((each) => each !== null);
  const base = verifications[first];
  if (base == null) return null;
  const turned = verifications.map((each) => each && turnedOf(each));
  const widest = widestLimits(verifications);
  const areDecisions = verifications.every((each, at) => each === null || turned[at] !== null);
  const figures = runs.map((run, at): Known => {
    const verification = verifications[at] ?? null;
    const names = [letters[first]!, letters[at]!] as const;
    const other =
      modelsDiffer(runs[first]!, run) ??
      (verification && samplesDiffer(runs[first]!, run, otherSamples(base, verification), names));
    if (other !== null) return other;
    if (verification === null)
      return isAsItIs(run) ? 0 : 'Its outputs were not compared with those of the original.';
    return (areDecisions ? turned[at] : severityBy(widest, verification)) ?? 'Nothing was checked.';
  });
  return areDecisions
    ? { what: 'decisions lost or new', unit: 'share' as const, limit: null, figures }
    : { what: 'error, share of the widest limit', unit: 'share' as const, limit: 1, figures };
}

/** Limits of different precisions differ, so that shares of their own would not compare: of each check the widest counts, by output and statistic. */
function widestLimits(verifications: readonly (VerifyResult | null)[]): ReadonlyMap<string, number> {
  const widest = new Map<string, number>();
  for (const { name, checks } of verifications.flatMap((each) => each?.outputs ?? []))
    for (const { statistic, limit, bound } of checks) {
      const key = `${name}: ${statistic}`;
      const known = widest.get(key) ?? limit;
      widest.set(key, bound === 'at-least' ? Math.min(known, limit) : Math.max(known, limit));
    }
  return widest;
}

/** The nearness of the worst check to its limit of these; null where nothing was checked. */
function severityBy(limits: ReadonlyMap<string, number>, { outputs }: VerifyResult): number | null {
  const shares = outputs.flatMap(({ name, checks }) =>
    checks
      .filter(({ statistic }) => !isOfDecisions(statistic))
      .map((check) =>
        severityOf({ ...check, limit: limits.get(`${name}: ${check.statistic}`) ?? check.limit }),
      ),
  );
  return shares.length === 0 ? null : Math.max(...shares);
}

/** Of the output and the rule of which most turned; null without decisions, and where they are too few. */
function turnedOf({ outputs }: VerifyResult): number | null {
  const shares = outputs.flatMap(({ decisions = [] }) =>
    decisions.flatMap(({ lost, new: added, reference, pass }) =>
      pass === null ? [] : [(lost + added) / Math.max(1, reference)],
    ),
  );
  return shares.length === 0 ? null : Math.max(...shares);
}

/** That the model itself was built. */
const isAsItIs = ({ request, model, conversion, engineVerification }: ForgeResult): boolean =>
  formatNamed(request.precision) === undefined &&
  model !== null &&
  conversion === null &&
  engineVerification === null;

/** The options that a command line judges by. */
const JUDGING = ['--inputs', '--seed', '--samples', '--val-range', '--preprocess', '--imgsz'];

/** The words of the line of a run, an option with its value, and how far its samples are its own: drawn ones, files, what a calibration held out. */
function lineOf({ repeat }: ForgeResult) {
  const takes = (name = '') => [...JUDGING, '--calibration'].includes(name);
  const words = shellWords(repeat ?? '').flatMap(
    (word) => /^(--[a-z-]+)=(.*)$/s.exec(word)?.slice(1) ?? [word],
  );
  const options = words.flatMap((word, at) =>
    takes(words[at - 1]) ? [] : [takes(word) ? [word, words[at + 1] ?? ''] : [word]],
  );
  const valuesOf = (name: string) => options.flatMap((each) => (each[0] === name ? each.slice(1) : []));
  const [files, ranges] = [valuesOf('--inputs'), valuesOf('--calibration')];
  return { options, files, ranges, rank: files.length > 0 ? 1 : ranges.length > 0 ? 2 : 0 };
}

/** That the samples differ, and the line that runs one on those of the other. */
function samplesDiffer(
  runA: ForgeResult,
  runB: ForgeResult,
  differing: string | null,
  names: Names,
): string | null {
  if (differing === null || runA.repeat === null || runB.repeat === null) return differing;
  const [a, b] = [lineOf(runA), lineOf(runB)];
  const isA = a.rank < b.rank;
  const [own, other] = isA ? [a, b] : [b, a];
  const isUnconverted = (isA ? runA : runB).conversion === null;
  if (
    other.rank === 2
      ? own.ranges.length > 0 || isUnconverted
      : own.ranges.some((file) => other.files.includes(file))
  )
    return `${differing} Run both with the same --inputs, of samples that no ranges were made from.`;
  const taken = other.options.filter(
    ([name = '']) => JUDGING.includes(name) || (other.rank === 2 && name === '--calibration'),
  );
  // The preparation of pictures stays for those of a calibration.
  const replaced = new Set([...JUDGING.slice(0, 4), ...taken.map(([name]) => name)]);
  const line = [...own.options.filter(([name]) => !replaced.has(name!)), ...taken].flat();
  return `${differing} To compare, run ${names[isA ? 0 : 1]} on the samples of ${names[isA ? 1 : 0]}: ${shellLine(line)}`;
}
