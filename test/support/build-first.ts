import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Children that tests start (the CLI, supervised workers) run from dist/, so it must match src/. Type errors are the types step's business. */
export function setup(): void {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  spawnSync('npx', ['tsc', '-p', 'tsconfig.build.json'], { cwd: root });
}
