// `npm run test:gpu [-- NAME…] [--record FILE]`: runs the checks of test/gpu (all, or those named) on this machine's GPU and its TensorRT, one
// after another, and ends with «N passed, N failed». The checks use dist/ and the addon: run «npm run build && npm run build:native» first.
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import { spawn } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { asked } from './phases.mjs';
import { root } from './setup.mjs';

const folder = join(root, 'test', 'gpu');
/** Builds by the TensorRT provider of one file take five minutes and more. */
const LIMIT_MS = 900_000;
const { values, positionals } = asked(() =>
  parseArgs({ options: { record: { type: 'string' } }, allowPositionals: true }),
);

const nameOf = (file) => basename(file, '.gpu.mjs');
const files = readdirSync(folder).filter((file) => file.endsWith('.gpu.mjs'));
const unknown = positionals.filter((name) => !files.some((file) => nameOf(file) === name));
if (unknown.length > 0) {
  console.error(`No checks are called ${unknown.join(', ')}; there are ${files.map(nameOf).join(', ')}.`);
  process.exit(2);
}

const parsed = (line) => {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
};

/** Runs one file and gives its lines; a file that dies or hangs is one failed check with what it said last. */
async function run(file) {
  const child = spawn(process.execPath, [join(folder, file)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said = (said + chunk).slice(-2000);
  });
  const lines = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    const result = parsed(line);
    if (result === undefined) return;
    lines.push(result);
    show(result);
  });
  const [status, signal] = await new Promise((resolve) => {
    child.on('close', (...ended) => resolve(ended));
  });
  const finished = lines.some(({ check }) => check === 'all');
  if (!finished && status !== 3) {
    const ended = { check: 'the script ends', ok: false, why: `${signal ?? `exit ${status}`}: ${said}` };
    lines.push(ended);
    show(ended);
  }
  return { file, status, lines };
}

function show({ check, ok, skipped, ms, why, code }) {
  if (check === 'all') return;
  const word = skipped ? 'skip' : ok ? 'ok  ' : 'FAIL';
  const reason = why === undefined ? '' : `: ${code === undefined ? '' : `${code} `}${why}`;
  console.log(`${word} ${check}${ms === undefined ? '' : ` (${ms} ms)`}${reason}`);
}

const results = [];
for (const file of files.filter((name) => positionals.length === 0 || positionals.includes(nameOf(name)))) {
  console.log(`\n${nameOf(file)}`);
  const result = await run(file);
  results.push(result);
  if (result.status === 3 && result.lines.every(({ check }) => check === 'machine')) {
    console.log('0 passed, 0 failed: this machine has no GPU or no TensorRT');
    process.exit(3);
  }
}
const checks = results
  .flatMap(({ lines }) => lines)
  .filter(({ check }) => check !== 'all' && check !== 'machine');
const count = (which) => checks.filter(which).length;
const failed = count(({ ok, skipped }) => !ok && !skipped);
const skipped = count((line) => line.skipped);
if (values.record !== undefined) writeFileSync(values.record, `${JSON.stringify(results, null, 1)}\n`);
console.log(
  `\n${count(({ ok }) => ok)} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`,
);
process.exitCode = failed === 0 ? 0 : 1;
