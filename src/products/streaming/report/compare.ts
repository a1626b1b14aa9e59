import { basename } from 'node:path';
import { comparedPart, differ, fileSide, lacks, row } from '../../../report/comparison/part.js';
import type { ComparedPart, RunComparison } from '../../../report/comparison/result.js';
import type { ResultAt } from '../../../report/result.js';
import { packageVersion } from '../../../version.js';
import type { ParityResult } from '../verify/result.js';
import { parityHeadline } from './sentences.js';

/** Two verifications of a stream side by side: errors where both were compared with one reference in one way, and times. */
export function compareParities(a: ResultAt<ParityResult>, b: ResultAt<ParityResult>): RunComparison {
  return {
    schema: 'trtforge.run-comparison/1',
    version: packageVersion(),
    kind: 'stream verify',
    ...{ a: sideOf(a), b: sideOf(b) },
    identity: null,
    environment: [],
    parts: [enginePart, accuracyPart, speedPart].flatMap((partOf) => partOf(a.result, b.result) ?? []),
  };
}

const sideOf = ({ path, result }: ResultAt<ParityResult>): RunComparison['a'] => ({
  ...fileSide(path, result.candidate),
  precision: result.built?.precision ?? null,
  outcome: result.outcome,
  headline: parityHeadline(result),
});

const enginePart = ({ memory: a }: ParityResult, { memory: b }: ParityResult): ComparedPart | null =>
  comparedPart('engine', [
    row('size of the plan', 'bytes', a.planBytes, b.planBytes),
    row('memory of the host, at most', 'bytes', a.peakHostBytes, b.peakHostBytes),
    row('memory of the GPU after the stream', 'bytes', a.gpuBytes, b.gpuBytes),
  ]);

function accuracyPart(a: ParityResult, b: ParityResult): ComparedPart | null {
  const names = [...new Set([...a.outputs, ...b.outputs].map(({ tensor }) => tensor))];
  const of = ({ outputs }: ParityResult, name: string) => outputs.find(({ tensor }) => tensor === name);
  return comparedPart(
    'accuracy',
    [
      row('chunks that pass', 'share', a.passRate, b.passRate),
      ...names.flatMap((name) => {
        const [one, other] = [of(a, name), of(b, name)];
        return [
          row(`${name}: max error`, 'error', one?.maxAbs.max, other?.maxAbs.max),
          row(`${name}: p95 error of a chunk`, 'error', one?.maxAbs.p95, other?.maxAbs.p95),
          row(`${name}: mean error`, 'error', one?.meanAbs, other?.meanAbs),
        ];
      }),
      row('drift by chunk', 'error', slopeOf(a), slopeOf(b)),
    ],
    [
      differ('The references differ', basename(a.reference), basename(b.reference)),
      differ('The numbers of chunks differ', String(a.chunks), String(b.chunks)),
      differ('The modes differ', a.mode, b.mode),
      differ('The rules differ', a.rule, b.rule),
    ],
  );
}

const slopeOf = ({ drift }: ParityResult) => drift?.slope.robust.perChunk;

/** The results do not state the machine. */
function speedPart(a: ParityResult, b: ParityResult): ComparedPart | null {
  const [one, other] = [a.times.rest, b.times.rest];
  const gpuTimes = (side: ParityResult) => new Map(side.gpuTimes.map((each) => [each.shapes, each]));
  const [timesA, timesB] = [gpuTimes(a), gpuTimes(b)];
  return comparedPart(
    'speed',
    [
      ...[...new Set([...timesA.keys(), ...timesB.keys()])].map((shapes) =>
        row(
          `GPU time, median (${shapes})`,
          'ms',
          timesA.get(shapes)?.computeMs,
          timesB.get(shapes)?.computeMs,
        ),
      ),
      ...(['mean', 'p50', 'p95', 'p99', 'max'] as const).map((name) =>
        row(`step, ${name}`, 'ms', one?.total[name], other?.total[name]),
      ),
    ],
    [lacks('times', one, other)],
    [
      differ('Run by', a.candidateBackend, b.candidateBackend),
      differ('The state stays at different places', a.state.place, b.state.place),
      'The results do not state the machine: compare times of one machine only.',
    ],
  );
}
