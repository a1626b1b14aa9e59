import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { type BenchCase, type BenchContext, generate, trtforge } from '../context.js';
import { CommandFailed, measureCommand, median } from '../measure.js';
import { costs } from '../result.js';

const ENGINES = 10_000;

/** What a large store costs: listing it from the shell, and a hit in the library when model and engine are known. */
export const cache: BenchCase = {
  name: 'cache',
  run: (context) => {
    const store = join(context.folder, 'many-engines');
    worker(context, 'fill', store, String(ENGINES));
    const env = { ...process.env, XDG_CACHE_HOME: join(context.folder, 'xdg') };
    const list = trtforge(context, 'cache', 'ls', '--cache-dir', store);
    const first = measureCommand(list, { runs: 1, warmups: 0, env });
    const again = measureCommand(list, { runs: context.runs, env });
    const skipped: string[] = [];
    return {
      case: 'cache',
      title: `A store of ${ENGINES} engines`,
      commands: ['trtforge cache ls', 'buildOrLoad(...) of a 100 MB model that the store has'],
      measurements: [
        ...costs('list 10,000 engines, first time', first, undefined, {}),
        ...costs('list 10,000 engines', again, undefined, { seconds: 0.3 }),
        ...libraryHit(context, skipped),
      ],
      skipped,
    };
  },
};

function libraryHit(context: BenchContext, skipped: string[]) {
  try {
    const model = generate(context, 'matmul-stack', '100MB');
    const store = join(context.folder, 'hit-store');
    const shapes = ['--profile', 'x:1x1024/8x1024/32x1024'];
    const target = ['--target', 'tensorrt-rtx:sm_89', '--cache-dir', store];
    measureCommand(trtforge(context, 'build', model, ...shapes, ...target), { runs: 1, warmups: 0 });
    const seconds = median(worker(context, 'hit', model, store, '20'));
    const bar = { limit: 0.02, better: 'lower' as const };
    return [{ what: 'hit in the library, digests known', unit: 's' as const, ours: seconds, bar }];
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    skipped.push(`hit in the library: ${error.message}`);
    return [];
  }
}

/** Runs a task of `bench/store-worker.ts`; gives the seconds it prints. */
export function worker(context: BenchContext, ...words: string[]): number[] {
  const child = join(context.root, 'build', 'bench', 'store-worker.js');
  const { status, stdout, stderr } = spawnSync(process.execPath, [child, context.root, ...words], {
    encoding: 'utf8',
    env: process.env,
  });
  if (status === 0) return JSON.parse(stdout.trim().split('\n').at(-1) ?? '[]') as number[];
  throw new CommandFailed(`${words[0]}: ${stderr.trim().split('\n').at(-1)}`);
}
