import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BugReport, bugReportSchema } from '../../../src/cli/bug-report/result.js';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { openModel } from '../../../src/formats/onnx/model.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { floats } from '../../engines/runtime/onnxruntime/models.js';
import { describeWith } from '../../support/needs.js';
import { type Answer, trtforge } from '../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-report-bug-test-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const home = join(root, 'home', 'someone');
const at = (...names: readonly string[]) => join(home, ...names);

const secrets = {
  ARTIFACTS_SECRET_KEY: 'wJalrXUtnFEMI/K7MDENG"bPxRfiCY',
  AWS_SESSION_TOKEN: 'FwoGZXIvYXdzEBYaDJ',
  MY_PASSWORD: 'correct horse battery',
};
const environment = {
  ...process.env,
  ...secrets,
  HOME: home,
  XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? join(process.env.HOME ?? '', '.cache'),
  TENSORRT_CACHE_DIR: at('engines'),
  ARTIFACTS_BUCKET: '',
  // Not the shims of version managers: each report asks for the version of python3, of which one starts thirty processes.
  PATH: '/usr/bin:/bin',
};
const report = async (...args: readonly string[]) => {
  const { exitCode, json } = await trtforge(['report-bug', '--json', ...args], environment);
  return { exitCode, result: json<Answer & BugReport>() };
};

/** A product, with a plug-in behind it where one is named: no builder knows it. */
async function model(name: string, weight: (at: number) => number, plugin = false): Promise<string> {
  const graph = new GraphBuilder('g');
  graph.input('x', 'float32', ['n', 8]);
  graph.initializer(
    'w',
    floats(
      'float32',
      [8, 8],
      Array.from({ length: 64 }, (_, i) => weight(i)),
    ),
  );
  graph.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: [plugin ? 'm' : 'y'] });
  if (plugin) graph.node('Mystery', { name: 'plugin', domain: 'acme', inputs: ['m'], outputs: ['y'] });
  graph.output('y', 'float32', ['n', 8]);
  const built = buildModel(graph, plugin ? { opsets: { acme: 1 } } : {});
  built.proto.graph!.node[0]!.docString = `File "${home}/model.py", key ${secrets.AWS_SESSION_TOKEN}`;
  await writeModel(built, at(name));
  return at(name);
}

/** Every file of an archive, by its name. */
function unpacked(archive: string) {
  const folder = mkdtempSync(join(root, 'unpacked-'));
  execFileSync('tar', ['-xzf', archive, '-C', folder]);
  const files = readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => statSync(join(folder, name)).isFile());
  return {
    folder: join(folder, 'bug-report'),
    names: files.sort(),
    read: (name: string) => readFileSync(join(folder, name)),
  };
}

const weightsOf = (path: string): Float32Array => {
  const opened = openModel(path);
  try {
    const [tensor] = opened.proto.graph!.initializer;
    const bytes = Buffer.concat([...opened.weight(tensor!).chunks()].map((chunk) => Buffer.from(chunk)));
    return new Float32Array(Uint8Array.from(bytes).buffer);
  } finally {
    opened.close();
  }
};

let withPlugin: string;
beforeAll(async () => {
  mkdirSync(home, { recursive: true });
  withPlugin = await model('plugin.onnx', Math.sin, true);
});

describeWith('toolchain', 'a build that fails', () => {
  const line = () => ['--', 'build', withPlugin, '--batch', '1/2/4', '--target', 'tensorrt-rtx:sm_89'];

  test('is packed with seeded weights, with which it fails in the same way', async () => {
    writeFileSync(
      at('keys.yaml'),
      `name: net\n# ${secrets.MY_PASSWORD} of ${home}, https://me:hunter2pass@host/x?X-Amz-Signature=abcdef0123\n`,
    );
    writeFileSync(at('net.engine'), 'the engine of before');
    const more = ['--config', at('keys.yaml'), '-o', at('net.engine')];
    const { exitCode, result } = await report('-o', at('bug.tar.gz'), ...line(), ...more);
    expect(exitCode).toBe(0);
    const { schema: _, ...parsed } = bugReportSchema.parse({ ...result, schema: 'trtforge.report-bug/1' });
    expect(parsed).toMatchObject({
      failure: { code: 'TF_MODEL_REJECTED' },
      weights: 'seeded',
      isReproduced: true,
      leftOut: [],
    });
    expect(readFileSync(at('net.engine'), 'utf8')).toBe('the engine of before');

    const { folder, names, read } = unpacked(at('bug.tar.gz'));
    expect(names).toEqual(
      expect.arrayContaining(['bug-report/inputs/plugin.onnx', 'bug-report/inputs/keys.yaml']),
    );
    const forbidden = [...Object.values(secrets), home, 'hunter2pass', 'abcdef0123', process.cwd()];
    for (const name of names)
      for (const text of forbidden) expect(read(name).includes(text), `${text} in ${name}`).toBe(false);
    expect(weightsOf(join(folder, 'inputs', 'plugin.onnx'))).not.toEqual(weightsOf(withPlugin));
    expect(JSON.parse(String(read('bug-report/environment.json'))).doctor.schema).toBe('trtforge.doctor/1');

    // Whoever receives it runs the line as it stands there.
    const words = result.repeat.split(' ').slice(1);
    const again = words.map((word) => (word.startsWith('inputs/') ? join(folder, word) : word));
    const { json } = await trtforge([...again.slice(0, again.indexOf('-o')), '--json'], environment);
    expect(json().error?.code).toBe('TF_MODEL_REJECTED');
  });

  test('is packed with its weights where they are asked for, without a second run', async () => {
    const { exitCode, result } = await report('-o', at('real.tar.gz'), '--with-weights', ...line());
    expect(exitCode).toBe(0);
    expect(result).toMatchObject({ weights: 'original', isReproduced: null, seeded: null });
    const { folder } = unpacked(at('real.tar.gz'));
    expect(weightsOf(join(folder, 'inputs', 'plugin.onnx'))).toEqual(weightsOf(withPlugin));
  });
});

describe('a comparison that fails', () => {
  const inputs = () => at('sample.npz');
  beforeAll(async () => {
    await model('reference.onnx', Math.sin);
    await model('candidate.onnx', (i) => Math.sin(63 - i));
    writeNpz(
      inputs(),
      new Map([
        [
          'x',
          floats(
            'float32',
            [2, 8],
            Array.from({ length: 16 }, (_, i) => i),
          ),
        ],
      ]),
    );
  });

  test('only with its own weights is not reproduced: they are packed on request alone', async () => {
    const line = ['--', 'verify', at('candidate.onnx'), '--against', at('reference.onnx'), '--samples', '1'];
    const { exitCode, result } = await report('-o', at('differs.tar.gz'), ...line);
    expect([exitCode, result.failure]).toEqual([4, { exitCode: 1, code: null, message: null }]);
    expect(result).toMatchObject({ weights: 'seeded', isReproduced: false, seeded: { exitCode: 0 } });
    const real = await report('-o', at('differs.tar.gz'), '--with-weights', ...line);
    expect([real.exitCode, real.result.weights]).toEqual([0, 'original']);
  });

  test('has what else it read: tensors as they are, neither engines nor keys nor what may be weights', async () => {
    writeFileSync(at('plan.engine'), 'ftrt and weights');
    writeFileSync(at('x.npz'), readFileSync(inputs()));
    const line = [
      '--',
      'run',
      at('candidate.onnx'),
      at('x.npz'),
      '--inputs',
      `z=@${at('z.npy')}`,
      '-o',
      at('out.npz'),
    ];
    const { result } = await report('-o', at('run.tar.gz'), ...line);
    expect(result.failure.exitCode).toBe(2);
    const { names, read } = unpacked(at('run.tar.gz'));
    expect(read('bug-report/inputs/x.npz').equals(readFileSync(inputs()))).toBe(true);
    expect(names.filter((name) => name.endsWith('.npz'))).toHaveLength(1);
    expect(existsSync(at('out.npz'))).toBe(false);

    writeFileSync(at('trust.pem'), '-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----\n');
    writeFileSync(at('blob.bin'), Buffer.from([0, 1, 2, 3]));
    for (const file of ['plan.engine', 'trust.pem', 'blob.bin']) {
      const of = await report('-o', at('left.tar.gz'), '--', 'compare', at(file), inputs());
      expect(of.result.leftOut.map(({ path }) => path)).toEqual([`~/${file}`]);
      expect(unpacked(at('left.tar.gz')).names.some((name) => name.endsWith(file))).toBe(false);
    }
  });
});

test('a search that found what fails is packed with a reduced model of seeded weights', async () => {
  const graph = new GraphBuilder('g');
  graph.input('x', 'float32', [4, 8]);
  const values = (scale: number) =>
    floats(
      'float32',
      [8, 8],
      Array.from({ length: 64 }, (_, i) => scale * (1 + Math.sin(i))),
    );
  for (const [name, scale] of [
    ['a', 300],
    ['b', 300],
    ['c', 1e-6],
  ] as const)
    graph.initializer(name, values(scale));
  graph.node('MatMul', { name: 'first', inputs: ['x', 'a'], outputs: ['p'] });
  graph.node('MatMul', { name: 'second', inputs: ['p', 'b'], outputs: ['q'] });
  graph.node('MatMul', { name: 'third', inputs: ['q', 'c'], outputs: ['y'] });
  graph.output('y', 'float32', [4, 8]);
  await writeModel(buildModel(graph), at('wide.onnx'));
  const narrow = ['convert', at('wide.onnx'), '--precision', 'fp16', '-o', at('narrow.onnx')];
  expect((await trtforge(narrow, environment)).exitCode).toBe(0);
  const line = ['--', 'bisect', at('narrow.onnx'), '--against', at('wide.onnx'), '-o', at('bisect')];
  const { exitCode, result } = await report('-o', at('bisect.tar.gz'), ...line);
  expect([exitCode, result.isReproduced, existsSync(at('bisect'))]).toEqual([0, true, false]);
  const { names } = unpacked(at('bisect.tar.gz'));
  for (const file of ['reduced.onnx', 'inputs.npz', 'expected.npz'])
    expect(names).toContain(`bug-report/seeded-outputs/bisect/${file}`);
  expect(names.filter((name) => name.startsWith('bug-report/outputs/') && name.endsWith('.onnx'))).toEqual(
    [],
  );
});

describe('rejected:', () => {
  test.each<[string, readonly string[], string]>([
    ['a command that passes', ['--', 'inspect', 'candidate.onnx'], 'TF_USAGE'],
    ['no command of trtforge', ['--', 'trtexec', '--onnx=m.onnx'], 'TF_USAGE'],
    ['itself', ['--', 'report-bug', '-o', 'x', '--', 'build', 'm.onnx'], 'TF_USAGE'],
  ])('%s', async (_what, args, code) => {
    const words = args.map((arg) => (arg.endsWith('candidate.onnx') ? at(arg) : arg));
    const { exitCode, result } = await report('-o', at('none.tar.gz'), ...words);
    expect([exitCode, result.error?.code]).toEqual([2, code]);
    expect(existsSync(at('none.tar.gz'))).toBe(false);
  });

  test('an archive over what the command reads', async () => {
    const before = readFileSync(withPlugin);
    const { result } = await report('-o', withPlugin, '--force', '--', 'build', withPlugin);
    expect(result.error?.code).toBe('TF_OUTPUT_IS_INPUT');
    expect(readFileSync(withPlugin).equals(before)).toBe(true);
  });
});

describeWith('toolchain', 'a crash', () => {
  const main = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
  /** Runs in every process of the command, before it. */
  const preload = (script: string) => `--import data:text/javascript,${encodeURIComponent(script)}`;

  test.each([
    [
      'of trtforge itself, where nothing catches it',
      `setInterval(() => {
         if (process.listenerCount('uncaughtException') > 0) throw new Error('planted');
       }, 5).unref();`,
      'TF_INTERNAL',
      /^Error: planted\n +at /m,
    ],
    [
      'of every child process',
      `if (process.send) { process.stderr.write('about to die\\n'); process.abort(); }`,
      'TF_CHILD_DIED',
      /about to die(.|\n)*\n +at /,
    ],
  ])('%s is packed with log, environment and stack', async (_what, script, code, stack) => {
    const plain = await model('plain.onnx', Math.sin);
    const line = ['build', plain, '--batch', '1/2/4', '--target', 'tensorrt-rtx:sm_89', '--force-rebuild'];
    const archive = at(`${code}.tar.gz`);
    const { status, stdout } = spawnSync(
      process.execPath,
      [main, 'report-bug', '-o', archive, '--json', '--', ...line],
      { encoding: 'utf8', env: { ...environment, NODE_OPTIONS: preload(script) } },
    );
    expect([status, JSON.parse(stdout).failure]).toEqual([0, expect.objectContaining({ exitCode: 5, code })]);
    const { folder, read } = unpacked(archive);
    const text = (name: string) => read(`bug-report/${name}`).toString();
    expect(text('progress.txt')).toMatch(stack);
    expect(JSON.parse(text('output.json')).error.code).toBe(code);
    expect(text('events.jsonl')).toContain('"start"');
    expect(JSON.parse(text('environment.json')).doctor.findings.length).toBeGreaterThan(3);
    expect(existsSync(join(folder, 'inputs', 'plain.onnx'))).toBe(true);
  });
});
