import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cache } from './cases/cache.js';
import { calibrate } from './cases/calibrate.js';
import { coco } from './cases/coco.js';
import { compare } from './cases/compare.js';
import { convert } from './cases/convert.js';
import { demo } from './cases/demo.js';
import { edit } from './cases/edit.js';
import { explore } from './cases/explore.js';
import { fleet } from './cases/fleet.js';
import { guard } from './cases/guard.js';
import { images } from './cases/images.js';
import { inspect } from './cases/inspect.js';
import { quantisation } from './cases/quantisation.js';
import { reference } from './cases/reference.js';
import { start } from './cases/start.js';
import { store } from './cases/store.js';
import { transfer } from './cases/transfer.js';
import { verify } from './cases/verify.js';
import { wer } from './cases/wer.js';
import type { BenchCase, BenchContext } from './context.js';
import { CommandFailed } from './measure.js';
import { modelOptIn, preparePeers } from './peers.js';
import { benchReport, markdown } from './report.js';
import type { CaseResult } from './result.js';

const cases: readonly BenchCase[] = [
  start,
  inspect,
  convert,
  compare,
  reference,
  store,
  cache,
  fleet,
  calibrate,
  coco,
  images,
  transfer,
  guard,
  wer,
  explore,
  verify,
  quantisation,
  edit,
  demo,
];

const MARKS = ['<!-- npm run bench -- --record -->', '<!-- end of the recorded run -->'] as const;

const USAGE = `npm run bench [-- options]

Measures trtforge beside its peers in one run and reports the ratios; nothing is asserted.
  --only <case>     ${cases.map(({ name }) => name).join(', ')}; may be repeated (default: all but ${cases.flatMap(({ name, slow }) => (slow ? [name] : [])).join(' and ')}, which take long)
  --runs <n>        measured runs of each command after one warm-up (default 5)
  --folder <path>   where the large models are written, and removed again (default: the system's temporary folder; 6 GB)
  --modelopt        install NVIDIA's ModelOpt for quantisation (6 GB in build/bench-modelopt), unless MODELOPT_PYTHON names a Python that has it
  --record          also put the tables into docs/benchmarks.md
  --json            the results as one JSON object instead of Markdown
`;

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    runs: { type: 'string', default: '5' },
    folder: { type: 'string', default: tmpdir() },
    modelopt: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const known = new Map(cases.map((one) => [one.name, one]));
const unknown = values.only?.filter((name) => !known.has(name)) ?? [];
const runs = Number(values.runs);
if (values.help || unknown.length > 0 || !Number.isInteger(runs) || runs < 1) {
  process.stderr.write(USAGE);
  process.exitCode = values.help ? 0 : 2;
} else {
  const chosen = values.only?.map((name) => known.get(name)!) ?? cases.filter(({ slow }) => slow !== true);
  await bench(chosen);
}

async function bench(chosen: readonly BenchCase[]): Promise<void> {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  mkdirSync(values.folder, { recursive: true });
  const folder = mkdtempSync(join(values.folder, 'trtforge-bench-'));
  try {
    const peers = preparePeers(join(root, 'build', 'bench-venv'));
    const modelOpt = () => modelOptIn(join(root, 'build', 'bench-modelopt'), values.modelopt);
    const context: BenchContext = { root, folder, peers, modelOpt, runs };
    const results: CaseResult[] = [];
    for (const one of chosen) {
      process.stderr.write(`${one.name} …\n`);
      results.push(await runCase(one, context));
    }
    const command = [
      'npm run bench',
      ...(process.argv.length > 2 ? ['--', ...process.argv.slice(2)] : []),
    ].join(' ');
    const report = benchReport(context, command, results);
    const json = `${JSON.stringify(report, null, 2)}\n`;
    process.stdout.write(values.json ? json : markdown(report));
    if (values.record) record(join(root, 'docs', 'benchmarks.md'), markdown(report));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Replaces what the last recorded run wrote, between the page's two marks. */
function record(page: string, tables: string): void {
  const text = readFileSync(page, 'utf8');
  const [start, end] = [text.indexOf(MARKS[0]), text.indexOf(MARKS[1])];
  if (start === -1 || end < start) throw new Error(`${page} has no ${MARKS.join(' … ')}`);
  writeFileSync(page, `${text.slice(0, start + MARKS[0].length)}\n\n${tables.trim()}\n\n${text.slice(end)}`);
}

/** A command that fails costs its own case, with the reason in the report, not the others. */
async function runCase(one: BenchCase, context: BenchContext): Promise<CaseResult> {
  try {
    return await one.run(context);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return { case: one.name, title: one.name, commands: [], measurements: [], skipped: [error.message] };
  }
}
