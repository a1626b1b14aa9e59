// `npm test`: installs what is missing, then format, lint, types, unused exports and every test; ends with «N passed, N failed».
// Arguments go to vitest: `npm test -- test/formats/onnx`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runScript } from './phases.mjs';
import { root, setUp, steps } from './setup.mjs';

const tools = join(root, 'node_modules', '.bin');

const CHECKS = [
  ['format and lint', 'biome', ['ci', '--colors=off', '.']],
  ['types', 'tsc', ['-p', 'tsconfig.json']],
  ['unused files, exports and dependencies', 'knip', []],
];

function check([name, tool, args]) {
  const started = performance.now();
  const { status, stdout, stderr } = spawnSync(join(tools, tool), args, { cwd: root, encoding: 'utf8' });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`${status === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)\n`);
  if (status !== 0) process.stdout.write(`${stdout}${stderr}\n`);
  return status === 0;
}

/** Runs vitest and reads its counts from the JSON report; a run that leaves no report counts as one failure. */
function tests(args) {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-test-'));
  const report = join(folder, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const { status } = spawnSync(join(tools, 'vitest'), ['run', ...reporters, ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numFailedTestSuites, testResults } = JSON.parse(
      readFileSync(report, 'utf8'),
    );
    const skipped = testResults.flatMap((file) =>
      file.assertionResults.filter(({ status }) => status === 'pending' || status === 'skipped'),
    );
    for (const { fullName } of skipped) process.stdout.write(`skipped: ${fullName}\n`);
    const broken = status !== 0 && numFailedTests === 0 ? Math.max(1, numFailedTestSuites) : 0;
    return { passed: numPassedTests, failed: numFailedTests + broken, skipped: numPendingTests };
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

runScript(() => {
  setUp({ only: Object.keys(steps) });
  const checks = CHECKS.map(check);
  const { passed, failed, skipped } = tests(process.argv.slice(2));
  const checksPassed = checks.filter(Boolean).length;
  const failures = failed + checks.length - checksPassed;
  process.stdout.write(
    `${passed + checksPassed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`,
  );
  process.exitCode = failures === 0 ? 0 : 1;
});
