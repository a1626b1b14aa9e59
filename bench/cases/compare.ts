import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { RandomStream } from '../../examples/models/random.js';
import { type BenchCase, type BenchContext, peersOr } from '../context.js';
import { CommandFailed, median } from '../measure.js';

const TENSORS = 20;
const ELEMENTS = 1_000_000;

/** Polygraphy's own comparison of two runs of a model with TENSORS outputs; its report goes to a pipe that nobody reads, as in a script. */
const PEER = `
import json, sys, time
import numpy as np
from polygraphy.comparator import Comparator, CompareFunc, IterationResult, RunResults
candidate, reference, tensors, runs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
load = lambda path: {f"t{i}": values for i, values in enumerate(np.fromfile(path, np.float32).reshape(tensors, -1))}
results = RunResults([("candidate", [IterationResult(outputs=load(candidate))]), ("reference", [IterationResult(outputs=load(reference))])])
seconds = []
for _ in range(runs):
    started = time.perf_counter()
    Comparator.compare_accuracy(results, compare_func=CompareFunc.simple(atol=1e-5, rtol=1e-5))
    seconds.append(time.perf_counter() - started)
print(json.dumps(seconds))
`;

/** Error statistics of 20 M pairs of float32 (largest, mean, median, quantiles, relative), in one process, without reading and starting. */
export const compare: BenchCase = {
  name: 'compare',
  run: (context) => {
    const skipped: string[] = [];
    const files = writePairs(context);
    try {
      const parameters = [...files, String(TENSORS)];
      const module = join(context.root, 'dist', 'tensor', 'comparison.js');
      const child = join(context.root, 'build', 'bench', 'compare-floats.js');
      const ours = pairRate(process.execPath, [child, module, ...parameters, String(context.runs)]);
      const peers = peersOr(context, skipped);
      return {
        case: 'compare',
        title: 'Compare 20 tensors of 1 M float32',
        commands: [
          'compareFloats(candidate, reference, tolerance)',
          'Comparator.compare_accuracy, CompareFunc.simple',
        ],
        measurements: [
          {
            what: 'error statistics, one core',
            unit: 'M pairs/s',
            ours,
            ...(peers && {
              // Each of its runs takes seconds and needs no warming up.
              peer: { name: 'Polygraphy', figure: pairRate(peers.python, ['-c', PEER, ...parameters, '2']) },
            }),
            bar: { limit: 300, better: 'higher' },
          },
        ],
        skipped,
      };
    } finally {
      for (const file of files) rmSync(file, { force: true });
    }
  },
};

/** Millions of pairs a second, by the median of the seconds a child prints. */
function pairRate(program: string, parameters: readonly string[]): number {
  const child = spawnSync(program, parameters, { encoding: 'utf8', maxBuffer: 64 << 20 });
  const line = child.stdout?.trim().split('\n').at(-1) ?? '';
  if (child.status !== 0)
    throw new CommandFailed(`${program} failed: ${child.stderr.trim().split('\n').at(-1)}`);
  return (TENSORS * ELEMENTS) / median(JSON.parse(line) as number[]) / 1e6;
}

/** A standard normal reference, and a candidate that is off by a normal error of 1e-3; paths, the candidate's first. */
function writePairs({ folder }: BenchContext): [string, string] {
  const candidatePath = join(folder, 'candidate.f32');
  const referencePath = join(folder, 'reference.f32');
  const descriptors = [openSync(candidatePath, 'w'), openSync(referencePath, 'w')] as const;
  const references = new RandomStream(1, 'reference');
  const errors = new RandomStream(1, 'error');
  const reference = new Float32Array(ELEMENTS);
  const candidate = new Float32Array(ELEMENTS);
  for (let tensor = 0; tensor < TENSORS; tensor++) {
    references.fillNormal(reference, 0, 1);
    errors.fillNormal(candidate, 0, 1e-3);
    for (let i = 0; i < ELEMENTS; i++) candidate[i] = candidate[i]! + reference[i]!;
    writeSync(descriptors[0], candidate);
    writeSync(descriptors[1], reference);
  }
  for (const descriptor of descriptors) closeSync(descriptor);
  return [candidatePath, referencePath];
}
