// `npm test`: installs what is missing; format, lint, types and unused exports beside the compilers; then unit and integration tests.
// `npm run test:full`: what needs minutes or more tools: sanitizers, every real build, races, fuzzing at its full count, Chromium, the S3
// server, the examples. Both end with "N passed, N failed"; arguments go to vitest: `npm test -- test/formats/onnx`. Integration tests of leaves that no change can have
// touched run in the second alone; the first lists them.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { testsOf, untouchedLeaves } from './leaves.mjs';
import { runScript } from './phases.mjs';
import { root, setUp } from './setup.mjs';

const tools = join(root, 'node_modules', '.bin');
const build = join(root, 'build');

const INTEGRATION = ['integration', 'integration-alone'];

const TIERS = {
  test: {
    prepare: ['addon', 'toolchain'],
    checks: [
      ['format and lint', 'biome', ['ci', '--colors=off', '.']],
      // Its package has binaries for few machines.
      ...(process.platform === 'linux' && process.arch === 'x64'
        ? [['format of native', 'clang-format', ['--glob=native/**/*.{cpp,hpp}', '--dry-run', '--Werror']]]
        : []),
      // What the last check found about files that did not change stays true.
      [
        'types',
        'tsc',
        ['-p', 'tsconfig.json', '--incremental', '--tsBuildInfoFile', 'build/types.tsbuildinfo'],
      ],
      ['types of the page that runs in a browser', 'tsc', ['-p', 'tsconfig.page.json']],
      ['unused files, exports and dependencies', 'knip', []],
    ],
    projects: ['unit', ...INTEGRATION],
  },
  full: {
    prepare: ['examples', 'addon', 'toolchain', 'minio', 'triton', 'arm64'],
    checks: [['package as npm packs it', 'publint', ['--strict']]],
    projects: ['full', 'full-alone'],
  },
};

/** Runs a tool and resolves to its exit status and seconds; its output goes to the file. */
function run(tool, args, log, more = {}) {
  const started = performance.now();
  const file = openSync(log, 'w');
  // Each of thousands of children would read its certificates at its start, 0.1 s for a system's; the tests reach no server by TLS but their own.
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const child = spawn(join(tools, tool), args, {
    cwd: root,
    stdio: ['ignore', file, file],
    env: { ...env, ...more },
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) => {
      closeSync(file);
      resolve({ status, seconds: ((performance.now() - started) / 1000).toFixed(1) });
    });
  });
}

/** One line for a step, and its output where it failed. */
function printStep(passed, line, log) {
  process.stdout.write(`${passed ? 'ok  ' : 'FAIL'} ${line}\n`);
  if (!passed) process.stdout.write(`${readFileSync(log, 'utf8')}\n`);
}

async function check([name, tool, args]) {
  const log = join(build, `check-${name.replaceAll(' ', '-')}.log`);
  const { status } = await run(tool, args, log);
  printStep(status === 0, name, log);
  return status === 0;
}

/** Runs vitest and reads its counts from the JSON report; a run that leaves no report counts as one failure. */
async function tests(projects, args, leftOut = []) {
  const [log, report] = [join(build, 'test.log'), join(build, 'test.json')];
  rmSync(report, { force: true });
  process.stdout.write(`${projects.join(' and ')} tests, their output in ${relative(root, log)} …\n`);
  const reporters = ['--reporter=minimal', '--reporter=json', `--outputFile.json=${report}`];
  const { status, seconds } = await run(
    'vitest',
    ['run', ...projects.map((name) => `--project=${name}`), ...reporters, ...args],
    log,
    { TRTFORGE_TESTS_LEFT_OUT: leftOut.join() },
  );
  const { passed, failed, skipped } = countsOf(report, status);
  printStep(
    failed === 0,
    `${projects.join(' and ')} tests: ${passed} passed, ${failed} failed (${seconds} s)`,
    log,
  );
  for (const name of skipped) process.stdout.write(`skipped: ${name}\n`);
  return { passed, failed, skipped: skipped.length };
}

function countsOf(report, status) {
  try {
    const { numPassedTests, numFailedTests, numFailedTestSuites, testResults } = JSON.parse(
      readFileSync(report, 'utf8'),
    );
    const skipped = testResults.flatMap((file) =>
      file.assertionResults.filter(({ status }) => status === 'pending' || status === 'skipped'),
    );
    const broken = status !== 0 && numFailedTests === 0 ? Math.max(1, numFailedTestSuites) : 0;
    return {
      passed: numPassedTests,
      failed: numFailedTests + broken,
      skipped: skipped.map(({ fullName }) => fullName),
    };
  } catch {
    return { passed: 0, failed: 1, skipped: [] };
  }
}

/** What vitest runs, in turn: projects, arguments, and leaves whose integration tests it leaves out; and words about these. All run where the caller names files. */
function vitestRuns(isFull, args) {
  const { projects } = TIERS[isFull ? 'full' : 'test'];
  const { base, leaves } = args.length === 0 ? untouchedLeaves(root) : { leaves: [] };
  if (leaves.length === 0) return { vitest: [[projects, args]], leftOut: '' };
  if (isFull)
    return {
      vitest: [
        [projects, args],
        [INTEGRATION, leaves.map((leaf) => `${testsOf(leaf)}/`)],
      ],
      leftOut: '',
    };
  const files = leaves.flatMap((leaf) =>
    readdirSync(join(root, testsOf(leaf)), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.integration.test.ts'))
      .map((path) => `${testsOf(leaf)}/${path}`),
  );
  const leftOut = [
    `Not run, as nothing that they import differs from ${base.slice(0, 8)} of the main branch:`,
    ...files.sort().map((path) => `  ${path}`),
    `To run these ${files.length} files: npm run test:full, or npm test -- ${leaves.map(testsOf).join(' ')}`,
  ];
  return { vitest: [[projects, args, leaves]], leftOut: `${leftOut.join('\n')}\n` };
}

runScript(async () => {
  const [first, ...others] = process.argv.slice(2);
  const isFull = first === '--full';
  const { prepare, checks } = TIERS[isFull ? 'full' : 'test'];
  const args = isFull ? others : process.argv.slice(2);
  setUp({ only: ['machine', 'packages', 'dist'] });
  mkdirSync(build, { recursive: true });
  const checked = checks.map(check);
  setUp({ only: prepare });
  let [passed, failed, skipped] = [0, 0, 0];
  const { vitest, leftOut } = vitestRuns(isFull, args);
  for (const run of vitest) {
    const ended = await tests(...run);
    passed += ended.passed;
    failed += ended.failed;
    skipped += ended.skipped;
  }
  const outcomes = await Promise.all(checked);
  const checksPassed = outcomes.filter(Boolean).length;
  const failures = failed + outcomes.length - checksPassed;
  // A part of the tests, one that failed, or a machine that may lack something, uses a part of the options.
  const lacksNothing = skipped === 0 || process.env.TRTFORGE_TESTS_REQUIRE !== undefined;
  const isWhole = isFull && args.length === 0 && lacksNothing && failed === 0;
  const used = isWhole ? [spawnSync(process.execPath, [join(root, 'scripts', 'used-options.mjs')])] : [];
  for (const { status, stdout, stderr } of used) {
    process.stdout.write(`${status === 0 ? 'ok  ' : 'FAIL'} every option is run by a test\n`);
    process.stdout.write(`${stdout}${stderr}`);
  }
  process.stdout.write(leftOut);
  const unused = used.filter(({ status }) => status !== 0).length;
  process.stdout.write(
    `${passed + checksPassed + used.length - unused} passed, ${failures + unused} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`,
  );
  process.exitCode = failures + unused === 0 ? 0 : 1;
});
