import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { RandomStream } from '../../examples/models/random.js';
import { type BenchCase, type BenchContext, peersOr } from '../context.js';
import { CommandFailed, measureCommand, median } from '../measure.js';
import type { Measurement } from '../result.js';

const TENSORS = 20;
const ELEMENTS = 1_000_000;
/** Millions of pairs a second that the addon should reach. */
const ADDON_RATE = 100;
/** How many times the peer's rate the loop in TypeScript should reach. */
const PEER_RATIO = 25;

/** Of a safetensors file: the length of its JSON, then where each tensor is; filled up so that elements are aligned. */
const HEADER = ((): Buffer => {
  const tensors = Array.from({ length: TENSORS }, (_, index) => {
    const bytes = 4 * ELEMENTS;
    const place = { dtype: 'F32', shape: [ELEMENTS], data_offsets: [index * bytes, (index + 1) * bytes] };
    return [`t${index}`, place] as const;
  });
  const text = JSON.stringify(Object.fromEntries(tensors));
  const json = Buffer.from(text.padEnd(8 * Math.ceil(text.length / 8)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json]);
})();

/** Polygraphy's own comparison of two runs of a model with TENSORS outputs; its report goes to a pipe that nobody reads, as in a script. */
const PEER = `
import json, sys, time
import numpy as np
from polygraphy.comparator import Comparator, CompareFunc, IterationResult, RunResults
candidate, reference, header, tensors, runs = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
load = lambda path: {f"t{i}": values for i, values in enumerate(np.fromfile(path, np.float32, offset=header).reshape(tensors, -1))}
results = RunResults([("candidate", [IterationResult(outputs=load(candidate))]), ("reference", [IterationResult(outputs=load(reference))])])
seconds = []
for _ in range(runs):
    started = time.process_time()
    Comparator.compare_accuracy(results, compare_func=CompareFunc.simple(atol=1e-5, rtol=1e-5))
    seconds.append(time.process_time() - started)
print(json.dumps(seconds))
`;

/**
 * Error statistics of 20 M pairs of float32 (largest, mean, median, quantiles, relative) in one process, without reading and starting, with the addon and in
 * TypeScript alone; the same without quantiles, as every chunk of a stream is compared; and the whole command from two safetensors files.
 */
export const compare: BenchCase = {
  name: 'compare',
  run: (context) => {
    const skipped: string[] = [];
    const files = writePairs(context);
    try {
      const parameters = [...files, String(HEADER.length), String(TENSORS)];
      const dist = join(context.root, 'dist');
      const child = join(context.root, 'build', 'bench', 'compare-floats.js');
      const rate = (quantiles: string, pass: 'addon' | 'typescript'): number =>
        pairRate(process.execPath, [child, dist, ...parameters, String(context.runs), quantiles, pass]);
      const main = join(context.root, 'dist', 'main.js');
      const command = [process.execPath, main, 'compare', ...files, '--precision', 'fp16', '--quiet'];
      const { seconds } = measureCommand(command, { runs: context.runs }).median;
      const peers = peersOr(context, skipped);
      const peer = peers && {
        name: 'Polygraphy',
        // Each of its runs takes seconds and needs no warming up.
        figure: pairRate(peers.python, ['-c', PEER, ...parameters, '2']),
      };
      return {
        case: 'compare',
        title: 'Compare 20 tensors of 1 M float32',
        commands: [
          'comparePairs(pairs, tolerance, quantiles)',
          'Comparator.compare_accuracy, CompareFunc.simple',
          'trtforge compare CANDIDATE REFERENCE --precision fp16',
        ],
        measurements: [
          ...statistics(context, 'with quantiles', (pass) => rate('median-p99', pass), peer, skipped),
          ...statistics(
            context,
            'without quantiles, as in a stream',
            (pass) => rate('none', pass),
            peer,
            skipped,
          ),
          {
            what: 'the whole command, from file to verdict, wall time',
            unit: 'M pairs/s',
            ours: (TENSORS * ELEMENTS) / seconds / 1e6,
          },
        ],
        skipped,
      };
    } finally {
      for (const file of files) rmSync(file, { force: true });
    }
  },
};

/** The rate with the addon, where it is compiled, and in TypeScript alone, beside the peer's, which always finds quantiles. */
function statistics(
  { root }: BenchContext,
  what: string,
  rate: (pass: 'addon' | 'typescript') => number,
  peer: Measurement['peer'],
  skipped: string[],
): Measurement[] {
  const line = (pass: 'addon' | 'typescript', by: string, limit: number | undefined): Measurement => ({
    what: `${what}, ${by}, processor time`,
    unit: 'M pairs/s',
    ours: rate(pass),
    ...(peer && { peer }),
    ...(limit !== undefined && { bar: { limit, better: 'higher' } }),
  });
  const isCompiled = existsSync(join(root, 'build', 'trtforge.node'));
  if (!isCompiled) skipped.push(`${what}, with the addon: it is not compiled`);
  return [
    ...(isCompiled ? [line('addon', 'with the addon', ADDON_RATE)] : []),
    line('typescript', 'in TypeScript', peer && Math.round(PEER_RATIO * peer.figure)),
  ];
}

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
  const candidatePath = join(folder, 'candidate.safetensors');
  const referencePath = join(folder, 'reference.safetensors');
  const descriptors = [openSync(candidatePath, 'w'), openSync(referencePath, 'w')] as const;
  for (const descriptor of descriptors) writeSync(descriptor, HEADER);
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
