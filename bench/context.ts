import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CommandFailed } from './measure.js';
import type { Peers } from './peers.js';
import type { CaseResult } from './result.js';

/** What every case works with. */
export interface BenchContext {
  /** The clone. */
  readonly root: string;
  /** A temporary folder on the disk that is measured; the run removes it. */
  readonly folder: string;
  readonly peers: Peers | { readonly missing: string };
  /** A Python with NVIDIA's ModelOpt. */
  readonly modelOpt: () => { readonly python: string } | { readonly missing: string };
  /** Measured runs of each command, after one warm-up. */
  readonly runs: number;
}

export interface BenchCase {
  readonly name: string;
  /** Runs only when named: it takes minutes. */
  readonly slow?: true;
  run(context: BenchContext): CaseResult | Promise<CaseResult>;
}

/** Our command line as a user starts it. */
export const trtforge = (context: BenchContext, ...parameters: string[]): string[] => [
  process.execPath,
  join(context.root, 'dist', 'main.js'),
  ...parameters,
];

/** The same of the clone that BENCH_BASE names (the last release, compiled); undefined where it names none. */
export const ofOtherClone = (...parameters: readonly string[]): readonly string[] | undefined => {
  const base = process.env.BENCH_BASE;
  return base === undefined ? undefined : [process.execPath, join(base, 'dist', 'main.js'), ...parameters];
};

export const OTHER_CLONE = 'the other clone';
export const NO_OTHER_CLONE = 'beside another clone: BENCH_BASE names none';

/** The peers, or undefined with the reason noted. */
export function peersOr(context: BenchContext, skipped: string[]): Peers | undefined {
  if ('python' in context.peers) return context.peers;
  skipped.push(`peers: ${context.peers.missing}`);
  return undefined;
}

/** A module of ours as it is installed, by its path in dist. */
export const load = ({ root }: BenchContext, path: string) =>
  import(pathToFileURL(join(root, 'dist', path)).href);

/** Writes one of the example models into the run's folder and returns its path. */
export function generate(context: BenchContext, model: string, size: string, ...more: string[]): string {
  const path = join(context.folder, `${model}-${size}${more.includes('--external') ? '-external' : ''}.onnx`);
  const main = join(context.root, 'build', 'examples', 'models', 'main.js');
  const child = spawnSync(process.execPath, [main, model, '--size', size, '-o', path, ...more], {
    encoding: 'utf8',
  });
  if (child.status !== 0) throw new CommandFailed(`${model} could not be generated: ${child.stderr}`);
  return path;
}
