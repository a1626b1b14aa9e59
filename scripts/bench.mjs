// `npm run bench`: brings the clone up to date, then hands its arguments to the benchmark (bench/main.ts).
import { spawnSync } from 'node:child_process';
import { Phases, runScript, SetupError } from './phases.mjs';
import { root, setUp } from './setup.mjs';

runScript(() => {
  const phases = new Phases();
  setUp({ phases, only: ['machine', 'packages', 'dist', 'examples'] });
  try {
    setUp({ phases, only: ['addon', 'toolchain'] });
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    process.stderr.write(`What needs TensorRT will be skipped. ${error.message}\n`);
  }
  const bench = spawnSync(process.execPath, ['build/bench/main.js', ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  });
  process.exitCode = bench.status ?? 1;
});
