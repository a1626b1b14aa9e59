import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

/** Files of which `npm test` runs a part (a tenth of a fuzz test's runs, a verb of those that take an option), and the full tier all: they run in both. */
const inBoth = testFiles('.test.ts', /\/support\/runs\.js/);

/**
 * Tests that change what a process has once, for good: its modules or libraries. The others share processes, and import the source once in each; folders and
 * `vi.stubEnv` they put back.
 */
const alone = testFiles(
  '.test.ts',
  /vi\.(?:mock|spyOn)\(|process\.env[^;]* = |delete process\.env|\.enter\(|loadAddon/,
);

/** Where both tiers run, as in CI, these run once: whole, in the full tier. */
const once = process.env.TRTFORGE_TESTS_ONCE === '1' ? inBoth : [];

/** Integration tests that `npm test` leaves to the full tier (scripts/leaves.mjs). */
const leftOut = (process.env.TRTFORGE_TESTS_LEFT_OUT ?? '')
  .split(',')
  .filter((leaf) => leaf !== '')
  .map((leaf) => `test/products/${leaf}/**`);

function testFiles(ending: string, content: RegExp): readonly string[] {
  return readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(ending))
    .map((path) => `test/${path}`)
    .filter((path) => content.test(readFileSync(path, 'utf8')));
}

/** The longest file starts first: it takes minutes more than the next, and a new clone does not know that yet. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLongest = ({ moduleId }: TestSpecification) => moduleId.endsWith('/mutations.full.test.ts');
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

export default defineConfig({
  resolve: {
    alias: [
      { find: /^trtforge$/, replacement: source('index.ts') },
      { find: /^trtforge\/onnx$/, replacement: source('formats/onnx/index.ts') },
      { find: /^trtforge\/trtexec$/, replacement: source('tensorrt/trtexec/index.ts') },
      {
        find: /^trtforge\/(streaming|bundle|deepstream|evaluation)$/,
        replacement: source('products/$1/index.ts'),
      },
    ],
  },
  test: {
    globalSetup: ['test/support/build-first.ts'],
    // Each project transforms what it imports by itself, half a minute of both cores for all five; the first to do so does it for all, and for later runs.
    experimental: { fsModuleCache: true, fsModuleCachePath: source('../build/vitest') },
    // Limits end what hangs, on a machine that is busy with other work as well; no test is about time.
    testTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    // A hook may compile the addon, behind others that wait for the same, on a slow machine.
    hookTimeout: 600_000,
    // One more than there are cores: many tests wait, for children and for measurements of some length.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.{integration,full}.test.ts', ...once],
          pool: 'threads',
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/**/*.integration.test.ts'],
          exclude: [...alone, ...leftOut, ...once],
          pool: 'forks',
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration-alone',
          include: alone.filter((path) => path.endsWith('.integration.test.ts')),
          exclude: [...leftOut, ...once],
          pool: 'forks',
        },
      },
      {
        extends: true,
        test: {
          name: 'full',
          include: ['test/**/*.full.test.ts', ...inBoth],
          exclude: [...alone],
          pool: 'forks',
          isolate: false,
          env: { TRTFORGE_TESTS_FULL: '1' },
        },
      },
      {
        extends: true,
        test: {
          name: 'full-alone',
          include: alone.filter((path) => path.endsWith('.full.test.ts') || inBoth.includes(path)),
          pool: 'forks',
          env: { TRTFORGE_TESTS_FULL: '1' },
        },
      },
    ],
  },
});
