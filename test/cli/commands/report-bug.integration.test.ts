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
import { type BugReport, bugReportSchema } from '../../../src/cli/commands/bug-report/result.js';
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

/** Ten products in a row, an unknown operator behind the sixth; its weights are sines that nothing else has. */
async function chain(name: string, isNamed = true): Promise<string> {
  const graph = new GraphBuilder('g');
  graph.input('x', 'float32', ['n', 8]);
  let value = 'x';
  for (let at = 0; at < 10; at++) {
    const weight = Array.from({ length: 64 }, (_, i) => Math.sin(at + 3 * i));
    graph.initializer(`w${at}`, floats('float32', [8, 8], weight));
    graph.initializer(`b${at}`, floats('float32', [8], weight.slice(0, 8)));
    graph.initializer(`slope${at}`, floats('float32', [1], [0.25]));
    const inputs = [value, `w${at}`, `b${at}`];
    graph.node('Gemm', { name: isNamed ? `gemm${at}` : '', inputs, outputs: [`g${at}`] });
    const odd = { name: isNamed ? 'odd' : '', domain: 'acme', inputs: [`g${at}`], outputs: [`r${at}`] };
    if (at === 6) graph.node('Mystery', odd);
    else
      graph.node('PRelu', {
        name: isNamed ? `prelu${at}` : '',
        inputs: [`g${at}`, `slope${at}`],
        outputs: [`r${at}`],
      });
    value = `r${at}`;
  }
  graph.output(value, 'float32', ['n', 8]);
  await writeModel(buildModel(graph, { opsets: { acme: 1 } }), at(name));
  return at(name);
}

describeWith('toolchain', 'a build that fails, reduced', (where) => {
  const target = ['--batch', '1/2/4', '--target', 'tensorrt-rtx:sm_89'];

  test.each([
    ['names its node', 'chain.onnx', true],
    ['has nodes without names', 'anonymous.onnx', false],
  ])('%s: the node and its neighbours are packed, and fail in the same way', async (_what, name, isNamed) => {
    const model = await chain(name, isNamed);
    const archive = at(`${name}.tar.gz`);
    const sizes = isNamed ? target : ['--profile', 'x:1x8/2x8/4x8', ...target.slice(2)];
    const { exitCode, result } = await report('-o', archive, '--reduced', '--', 'build', model, ...sizes);
    expect(exitCode).toBe(0);
    expect(result.repeat).toContain(isNamed ? '--batch 1/2/4' : '--dim n=1/2/4');
    expect(result).toMatchObject({
      weights: 'seeded',
      isReproduced: true,
      failure: { code: 'TF_MODEL_REJECTED' },
    });
    expect(result.reduced).toMatchObject({ of: 20, why: null });
    expect(result.reduced!.nodes).toBeLessThanOrEqual(4);
    const [packed] = result.models;
    expect(packed).toMatchObject({ path: `inputs/${name}`, nodes: result.reduced!.nodes });

    const { folder } = unpacked(archive);
    const part = openModel(join(folder, 'inputs', name));
    try {
      const { node, initializer } = part.proto.graph!;
      expect(node.map(({ opType }) => opType)).toContain('Mystery');
      const names = initializer.map((tensor) => tensor.name);
      expect(packed!.replaced + packed!.kept.length).toBe(names.length);
      expect(packed!.kept).toEqual(names.filter((each) => each.startsWith('slope')));
      const original = openModel(model);
      try {
        for (const tensor of initializer.filter((each) => !packed!.kept.includes(each.name))) {
          const own = original.proto.graph!.initializer.find((each) => each.name === tensor.name)!;
          const [drawn, real] = [part.weight(tensor), original.weight(own)].map((weight) => [
            ...weight.chunks(),
          ]);
          expect(drawn).not.toEqual(real);
        }
      } finally {
        original.close();
      }
    } finally {
      part.close();
    }
    const again = await trtforge(['build', join(folder, 'inputs', name), ...target, '--json'], environment);
    expect(again.json().error?.code).toBe('TF_MODEL_REJECTED');
  });

  test("NVIDIA's capture is packed where its library is, and named where it is not", async () => {
    const line = ['--', 'build', await chain('captured.onnx'), ...target];
    const without = await report('-o', at('captured.tar.gz'), '--capture-api', ...line);
    expect([without.exitCode, without.result.capture]).toEqual([
      4,
      { files: [], why: expect.stringContaining('libtensorrt_shim.so') },
    ]);

    // Stands in for NVIDIA's: it writes the environment that it is loaded with, and is otherwise the library itself.
    const recorder = at('recorder');
    mkdirSync(recorder, { recursive: true });
    writeFileSync(
      join(recorder, 'shim.c'),
      `#include <stdio.h>
       #include <stdlib.h>
       __attribute__((constructor)) static void record(void) {
         FILE* file = fopen(getenv("TRT_SHIM_OUTPUT_JSON_FILE"), "w");
         fprintf(file, "{\\"library\\": \\"%s\\", \\"flush\\": \\"%s\\"}",
                 getenv("TRT_SHIM_NVINFER_LIB_NAME"), getenv("TRT_SHIM_FLUSH_ON_BUILD"));
         fclose(file);
       }`,
    );
    const library = join(where, 'libtensorrt_rtx.so.1');
    const compiled = [
      '-shared',
      '-fPIC',
      '-o',
      'libtensorrt_shim.so',
      'shim.c',
      '-Wl,--no-as-needed',
      library,
    ];
    execFileSync(process.env.CC ?? 'gcc', compiled, { cwd: recorder });
    const own = { ...environment, LD_LIBRARY_PATH: recorder };
    const { exitCode, json } = await trtforge(
      ['report-bug', '-o', at('captured.tar.gz'), '--force', '--reduced', '--capture-api', '--json', ...line],
      own,
    );
    expect([exitCode, json<BugReport>().capture]).toEqual([
      0,
      { files: ['api-capture/capture.json'], why: null },
    ]);
    const written = JSON.parse(
      String(unpacked(at('captured.tar.gz')).read('bug-report/api-capture/capture.json')),
    );
    expect(written).toEqual({ library: expect.stringMatching(/libtensorrt_rtx\.so\.1$/), flush: '1' });
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
    const part = await report('-o', at('differs.tar.gz'), '--reduced', ...line);
    expect([part.exitCode, part.result.isReproduced]).toEqual([4, false]);
    expect(part.result.reduced).toMatchObject({ nodes: null, of: 1, why: expect.any(String) });
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

test.each([
  ['a comparison', ['verify', 'narrow.onnx', '--against', 'wide.onnx']],
  ['a search', ['bisect', 'narrow.onnx', '--against', 'wide.onnx', '-o', 'out']],
])('%s of numbers is reduced by the search, without the whole models', async (what, words) => {
  const line = words.map((word) => (/\.onnx$|^out$/.test(word) ? at(word) : word));
  const archive = at(`${what.replace(' ', '-')}.tar.gz`);
  const { exitCode, result } = await report('-o', archive, '--reduced', '--', ...line);
  expect([exitCode, result.isReproduced, result.reduced?.why]).toEqual([0, true, null]);
  expect(result.reduced!.nodes).toBeGreaterThan(0);
  expect(result.models.map(({ path }) => path)).toEqual(['reduced/reduced.onnx']);
  const { names, folder } = unpacked(archive);
  expect(names.filter((name) => name.endsWith('.onnx'))).toEqual(['bug-report/reduced/reduced.onnx']);
  expect(names).toEqual(
    expect.arrayContaining(['bug-report/reduced/inputs.npz', 'bug-report/reduced/expected.npz']),
  );
  // Whoever receives it runs the lines as they stand there.
  const lines = result.repeat.split(' && ').map((each) => each.split(' ').slice(1));
  const codes: number[] = [];
  for (const each of lines) {
    const placed = each.map((word) => (word.startsWith('reduced/') ? join(folder, word) : word));
    codes.push((await trtforge(placed, environment)).exitCode);
  }
  expect(codes).toEqual([0, 1]);
});

describe('rejected:', () => {
  test.each<[string, readonly string[], string]>([
    ['a command that passes', ['--', 'inspect', 'candidate.onnx'], 'TF_USAGE'],
    ['no command of trtforge', ['--', 'trtexec', '--onnx=m.onnx'], 'TF_USAGE'],
    ['parts with their own weights', ['--reduced', '--with-weights', '--', 'build', 'm.onnx'], 'TF_USAGE'],
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
