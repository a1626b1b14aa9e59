import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Children that tests start (the CLI, supervised workers) run from dist/, so it must match src/. Type errors are the types step's business. */
export function setup(): void {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  // A file that moved or went would keep an old import alive.
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  spawnSync('npx', ['tsc', '-p', 'tsconfig.build.json'], { cwd: root });
}
