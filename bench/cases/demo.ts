import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { BenchCase } from '../context.js';
import { CommandFailed } from '../measure.js';
import type { CaseResult } from '../result.js';

interface DemoOutput {
  readonly phases: readonly { readonly phase: string; readonly seconds: number; readonly partOf?: string }[];
}

/** Clone to first engine: `npm run demo` in a fresh clone with empty caches of trtforge, npm and pip. */
export const demo: BenchCase = {
  name: 'demo',
  slow: true,
  run: (context) => {
    const clone = join(context.folder, 'clone');
    const caches = join(context.folder, 'caches');
    const environment = {
      ...process.env,
      XDG_CACHE_HOME: caches,
      npm_config_cache: join(caches, 'npm'),
      PIP_CACHE_DIR: join(caches, 'pip'),
    };
    const cloned = timed('git', ['clone', '--quiet', context.root, clone], context.folder, environment);
    const forged = timed(process.execPath, ['scripts/demo.mjs', '--json'], clone, environment);
    const { phases } = JSON.parse(forged.stdout) as DemoOutput;
    return {
      case: 'demo',
      title: 'From the clone to the first engine, caches empty',
      commands: ['git clone … && npm run demo'],
      measurements: [
        { what: 'clone', unit: 's', ours: cloned.seconds },
        ...phases.map(({ phase, seconds, partOf }) => ({
          what: partOf === undefined ? phase : `${partOf}: ${phase}`,
          unit: 's' as const,
          ours: seconds,
        })),
        { what: 'all', unit: 's', ours: cloned.seconds + forged.seconds },
      ],
      skipped: [],
    } satisfies CaseResult;
  },
};

function timed(
  program: string,
  parameters: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): { readonly stdout: string; readonly seconds: number } {
  const started = performance.now();
  const child = spawnSync(program, parameters, {
    cwd,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (child.status !== 0) throw new CommandFailed(`«${program} ${parameters.join(' ')}» failed`);
  return { stdout: child.stdout, seconds: (performance.now() - started) / 1000 };
}
