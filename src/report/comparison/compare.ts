import { plural } from '../../base/text/quantity.js';
import { differencesOf } from '../../engines/identity/differences.js';
import type { BenchMode, BenchRun } from '../../quality/bench/result.js';
import type { Measure, VerifiedOutput, VerifyResult } from '../../quality/verify/result.js';
import { packageVersion } from '../../version.js';
import type { RunOf } from '../kind.js';
import type { ForgeResult } from '../result.js';
import type { ComparedPart, ComparedRow, RunComparison } from './result.js';

type Run = RunOf<ForgeResult>;

/** Two runs of `forge` side by side. Figures that were measured in another way, on another machine or of another model get no ratio, and the reason. */
export function compareRuns(a: Run, b: Run): RunComparison {
  const [builtA, builtB] = [a.result.build, b.result.build];
  const parts = [enginePart, buildPart, precisionPart, accuracyPart, speedPart];
  return {
    schema: 'trtforge.run-comparison/1',
    version: packageVersion(),
    a: sideOf(a),
    b: sideOf(b),
    identity:
      builtA === null || builtB === null
        ? null
        : {
            equal: builtA.identity === builtB.identity,
            differences: [
              ...differencesOf(builtA.passport.identity.document, builtB.passport.identity.document),
            ],
          },
    environment: [...differencesOf(environmentOf(a), environmentOf(b))],
    parts: parts.flatMap((partOf) => partOf(a.result, b.result) ?? []),
  };
}

const sideOf = ({ root, result }: Run): RunComparison['a'] => {
  const { startedAt, version, request, verdict, engine, build } = result;
  const { outcome, headline } = verdict;
  return {
    run: root,
    startedAt,
    version,
    ...request,
    outcome,
    headline,
    engine,
    identity: build?.identity ?? null,
  };
};

const environmentOf = ({ result }: Run): Record<string, string> =>
  Object.fromEntries(result.environment.map(({ name, text }) => [name, text]));

type Rows = readonly Omit<ComparedRow, 'ratio'>[];

function part(
  name: ComparedPart['part'],
  rows: Rows,
  notComparable: readonly (string | null)[] = [],
  warnings: readonly (string | null)[] = [],
): ComparedPart | null {
  const known = rows.filter((row) => row.a !== null || row.b !== null);
  if (known.length === 0) return null;
  const [reasons, remarks] = [notComparable, warnings].map((texts) => texts.filter((text) => text !== null));
  const isComparable = reasons?.length === 0;
  return {
    part: name,
    notComparable: reasons ?? [],
    warnings: remarks ?? [],
    rows: known.map((row) => ({ ...row, ratio: isComparable ? ratioOf(row.a, row.b) : null })),
  };
}

function ratioOf(a: Measure | null, b: Measure | null): number | null {
  if (a === null || b === null) return null;
  const ratio = Number(a) / Number(b);
  return Number.isFinite(ratio) ? ratio : null;
}

const row = (
  what: string,
  unit: ComparedRow['unit'],
  a: Measure | null | undefined,
  b: Measure | null | undefined,
) => ({ what, unit, a: a ?? null, b: b ?? null });

const differ = (what: string, a: string, b: string): string | null =>
  a === b ? null : `${what}: ${a} and ${b}.`;

/** That one side has what the other has not. */
function lacks(what: string, a: unknown, b: unknown): string | null {
  const [missingA, missingB] = [a ?? null, b ?? null].map((side) => side === null);
  return missingA === missingB ? null : `${missingA ? 'A' : 'B'} has no ${what}.`;
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

function enginePart({ build: a }: ForgeResult, { build: b }: ForgeResult): ComparedPart | null {
  const [planA, planB] = [a?.passport.plan, b?.passport.plan];
  return part(
    'engine',
    [
      row('size of the plan', 'bytes', planA?.bytes, planB?.bytes),
      row('layers of the network', 'count', planA?.layers, planB?.layers),
    ],
    [lacks('engine', a, b)],
  );
}

function buildPart(runA: ForgeResult, runB: ForgeResult): ComparedPart | null {
  const [a, b] = [runA.build?.passport.built, runB.build?.passport.built];
  const machineOf = ({ gpu }: NonNullable<typeof a>, { build, environment }: ForgeResult) => {
    if (gpu !== null) return gpu;
    const processor = environment.find(({ name }) => name === 'processor')?.text;
    return build?.source === 'built' && processor !== undefined ? processor : 'an unknown machine';
  };
  return part(
    'build',
    [
      row('time of the library', 'ms', a?.ms, b?.ms),
      row('time of the conversion', 'ms', a?.conversionMs, b?.conversionMs),
      row('peak memory', 'bytes', a?.peakMemoryBytes, b?.peakMemoryBytes),
    ],
    a === undefined || b === undefined
      ? [lacks('engine', a, b)]
      : [
          differ('The engines were built on different machines', machineOf(a, runA), machineOf(b, runB)),
          differ('The timing caches differ', a.timingCache, b.timingCache),
        ],
  );
}

function precisionPart(a: ForgeResult, b: ForgeResult): ComparedPart | null {
  const types = [a, b].map(({ build }) => {
    const counts = new Map<string, number>();
    for (const { types: ofOperator } of build?.passport.plan.precisions?.operators ?? [])
      for (const [type, count] of Object.entries(ofOperator))
        counts.set(type, (counts.get(type) ?? 0) + count);
    return counts;
  });
  const [typesA, typesB] = types;
  return part(
    'precision',
    [
      row('nodes converted', 'count', a.conversion?.nodes.converted, b.conversion?.nodes.converted),
      row('nodes kept in FP32', 'count', a.conversion?.nodes.kept, b.conversion?.nodes.kept),
      row('size of the converted model', 'bytes', a.conversion?.bytes.after, b.conversion?.bytes.after),
      ...[...new Set(types.flatMap((counts) => [...counts.keys()]))].map((type) =>
        row(`layers in ${type}`, 'count', layersIn(typesA, type), layersIn(typesB, type)),
      ),
    ],
    [lacks('conversion', a.conversion, b.conversion), modelsDiffer(a, b)],
    [unknownWeights(a, b)],
  );
}

/** Null where the plan does not state what its layers compute in. */
const layersIn = (counts: ReadonlyMap<string, number> | undefined, type: string): number | null =>
  counts === undefined || counts.size === 0 ? null : (counts.get(type) ?? 0);

/** The engines against the original where both were run, else the typed models. */
function accuracyPart(runA: ForgeResult, runB: ForgeResult): ComparedPart | null {
  const isOfEngines = runA.engineVerification !== null && runB.engineVerification !== null;
  const of = ({ engineVerification, verification }: ForgeResult) =>
    isOfEngines ? engineVerification : verification;
  const [a, b] = [of(runA), of(runB)];
  const outputsOf = (side: VerifyResult | null) =>
    new Map(side?.outputs.map((output) => [output.name, output]));
  const [outputsA, outputsB] = [outputsOf(a), outputsOf(b)];
  const amount = (output: VerifiedOutput | undefined, statistic: string) =>
    output?.statistics.find(({ name }) => name === statistic)?.amount;
  return part(
    'accuracy',
    [...new Set([...outputsA.keys(), ...outputsB.keys()])].flatMap((name) =>
      ['max', 'mean'].map((statistic) =>
        row(
          `${name}: ${statistic} error`,
          'error',
          amount(outputsA.get(name), statistic),
          amount(outputsB.get(name), statistic),
        ),
      ),
    ),
    a === null || b === null
      ? [lacks('comparison with the original', a, b)]
      : [modelsDiffer(runA, runB), differ('The samples differ', samplesText(a), samplesText(b))],
    a === null || b === null
      ? []
      : [
          isOfEngines ? null : 'Errors of the typed models: not both engines were run.',
          unknownWeights(runA, runB),
        ],
  );
}

const samplesText = ({ seed, samples, inputs }: VerifyResult): string =>
  `${samples} of seed ${seed}, ${inputs.map(({ name, shape, from }) => `${name} ${shape.join('×')} ${from}`).join(', ')}`;

function speedPart(runA: ForgeResult, runB: ForgeResult): ComparedPart | null {
  const [a, b] = [runA.bench, runB.bench];
  const [runsA, runsB] = [a, b].map((side) => new Map(side?.runs.map((run) => [shapesText(run), run]))) as [
    Map<string, BenchRun>,
    Map<string, BenchRun>,
  ];
  const shapes = [...new Set([...runsA.keys(), ...runsB.keys()])];
  const common = shapes.filter((shape) => runsA.has(shape) && runsB.has(shape));
  const modes = common.map((shape) =>
    differ(
      `Measured in different modes (${shape})`,
      modeText(runsA.get(shape)!.mode),
      modeText(runsB.get(shape)!.mode),
    ),
  );
  const doubts = (
    [
      ['A', runsA],
      ['B', runsB],
    ] as const
  ).flatMap(([side, runs]) =>
    [...runs.values()].flatMap((run) => run.doubts.map(({ why }) => `${side} is unreliable: ${why}`)),
  );
  return part(
    'speed',
    shapes.flatMap((shape) => {
      const [one, other] = [runsA.get(shape), runsB.get(shape)];
      return [
        row(`GPU time, median (${shape})`, 'ms', one?.gpuMs?.median, other?.gpuMs?.median),
        row(`GPU time, p99 (${shape})`, 'ms', one?.gpuMs?.p99, other?.gpuMs?.p99),
        row(`end to end, median (${shape})`, 'ms', one?.endToEndMs?.median, other?.endToEndMs?.median),
        row(`items (${shape})`, 'per-second', one?.itemsPerSecond, other?.itemsPerSecond),
      ];
    }),
    a === null || b === null
      ? [lacks('measurement', a, b)]
      : [
          differ('Measured on different GPUs', a.gpu?.name ?? 'no GPU', b.gpu?.name ?? 'no GPU'),
          common.length === 0 ? 'The runs have no shapes in common.' : null,
          ...modes,
        ],
    a === null || b === null
      ? []
      : [
          modelsDiffer(runA, runB),
          differ('Measured by', a.backend, b.backend),
          differ('Drivers', a.gpu?.driver ?? 'unknown', b.gpu?.driver ?? 'unknown'),
          ...doubts,
        ],
  );
}

const shapesText = ({ shapes }: BenchRun): string =>
  shapes
    .map(({ name, shape }) => `${name} ${shape.join('×')}`)
    .sort()
    .join(', ');

const modeText = ({ kind, graph, spinWait, streams, idleMs }: BenchMode): string =>
  [
    kind,
    graph === true ? 'CUDA graph' : 'no CUDA graph',
    spinWait === true ? 'spin wait' : 'blocking wait',
    plural(streams, 'stream'),
    ...(idleMs > 0 ? [`${idleMs} ms idle`] : []),
  ].join(', ');
