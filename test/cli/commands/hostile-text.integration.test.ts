import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import type { Tensor } from '../../../src/formats/tensor/tensor.js';
import { policyOf } from '../../quality/gate/gate-case.js';
import { trtforge } from '../../support/trtforge.js';

/** ESC, BEL, C1, a bidirectional override, line ends with the commands of CIs, a line separator, a tag character. */
const EVIL =
  '::error::a\x1b]52;c;eA==\x07\x9b2J\u202eb\r\n::add-mask::c\n::stop-commands::d ##[add-mask]e ##vso[task]f\u2028\u{e0041}';

const before = process.cwd();
const folder = mkdtempSync(join(tmpdir(), 'trtforge-hostile-'));
const tensor: Tensor = {
  dtype: 'float32',
  shape: [4, 4],
  bytes: new Uint8Array(new Float32Array(16).fill(Number.NaN).buffer),
};

beforeAll(async () => {
  mkdirSync(join(folder, 'work'));
  process.chdir(join(folder, 'work'));
  const graph = new GraphBuilder(`graph${EVIL}`);
  graph.input(`x${EVIL}`, 'float32', [`batch${EVIL}`, 4]);
  graph.initializer(`w${EVIL}`, tensor);
  graph.node('MatMul', { name: EVIL, inputs: [`x${EVIL}`, `w${EVIL}`], outputs: [`h${EVIL}`] });
  graph.node(`Op${EVIL}`, { name: `custom${EVIL}`, inputs: [`h${EVIL}`], outputs: [`y${EVIL}`] });
  graph.output(`y${EVIL}`, 'float32', null);
  await writeModel(buildModel(graph, { producer: `producer${EVIL}` }), 'net.onnx');
  await writeModel(buildModel(graph, { producer: `producer${EVIL}` }), `f${EVIL.replaceAll('/', '')}.onnx`);
  const zeros = { ...tensor, bytes: new Uint8Array(64) };
  writeNpz(
    'a.npz',
    new Map([
      [`t${EVIL}`, tensor],
      [EVIL, zeros],
    ]),
  );
  writeNpz(
    'b.npz',
    new Map([
      [`t${EVIL}`, zeros],
      [EVIL, zeros],
    ]),
  );
  writeFileSync(
    'build.log',
    `[01/01/2026-00:00:00] [E] Error[4]: IShuffleLayer ${EVIL}: reshaping failed\n[E] [TRT] ${EVIL}\n&&&& FAILED TensorRT.trtexec # trtexec --onnx=${EVIL}\n`,
  );
  writeFileSync('evil.yaml', `${JSON.stringify(EVIL)}: 1\n`);
  writeFileSync('keep.yaml', `keep-nodes: [${JSON.stringify(EVIL)}]\nname: ${JSON.stringify(EVIL)}\n`);
  writeFileSync(
    'bench.json',
    JSON.stringify({ schema: 'trtforge.bench/1', gpuMs: { median: 9, [EVIL]: 9 } }),
  );
  const check = { result: { schema: 'trtforge.bench/1' }, unit: EVIL, fail: { above: 1 } };
  const simple = { ...check, id: 'a', field: 'gpuMs.median' };
  writeFileSync('simple.yaml', policyOf({ checks: [simple] }));
  writeFileSync('policy.yaml', policyOf({ checks: [{ ...simple, [EVIL]: 1 }] }));
});
afterAll(() => {
  process.chdir(before);
  rmSync(folder, { recursive: true, force: true });
});

const NOT_PRINTABLE = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const COMMAND = /^\s*::|##\w*\[/m;
/** What trtforge itself sends to a terminal: colours, and the live line's way back. */
const ESC = String.fromCharCode(27);
const OWN = new RegExp(`${ESC}\\[(?:[12]|22|3[1236]|39)m|\\r${ESC}\\[2K`, 'g');

const file = `f${EVIL.replaceAll('/', '')}.onnx`;
const lines: readonly (readonly string[])[] = [
  ['inspect', 'net.onnx'],
  ['inspect', 'net.onnx', '--check-weights'],
  ['inspect', file],
  ['inspect', `none${EVIL}`],
  ['convert', 'net.onnx', '-o', 'out.onnx', '--precision', 'fp16'],
  ['convert', file, '-o', 'out2.onnx', '--precision', 'fp16', '--keep-nodes', 'a|b'],
  ['convert', 'net.onnx', '-o', 'out3.onnx', '--config', 'keep.yaml', '--precision', 'fp16'],
  ['convert', 'net.onnx', '--config', 'keep.yaml', '--print-config'],
  ['convert', 'net.onnx', '--config', 'evil.yaml'],
  ['compare', 'a.npz', 'b.npz'],
  ['compare', 'a.npz', 'b.npz', '--map', EVIL],
  ['explain', 'build.log'],
  ['explain', 'build.log', '--model', 'net.onnx'],
  ['verify', 'net.onnx', '--against', 'net.onnx'],
  ['run', 'net.onnx', '--seed', '1'],
  ['gate', 'policy.yaml', 'bench.json'],
  ['gate', 'policy.yaml', 'bench.json', '--github'],
  ['gate', 'simple.yaml', 'bench.json', '--github'],
  ['cache', 'why', 'net.onnx', '--target', 'tensorrt-rtx:sm_89', '--cache-dir', `store${EVIL}`],
  ['build', 'net.onnx', '--target', 'tensorrt-rtx:sm_89', '--cache-dir', 'store'],
  ['build', 'net.onnx', '--target', EVIL],
  ['toolchain', 'env', EVIL],
  ['report', `no${EVIL}`],
  ['inspect', 'net.onnx', `--${EVIL}`],
  [EVIL],
];

test.each(lines)('nothing that a terminal or a CI obeys leaves: %j %j %j', async (...argv) => {
  let seen = '';
  for (const more of [[], ['--json'], ['--events', '--verbose']])
    for (const terminal of [false, true]) {
      const { out, err } = await trtforge(
        [...argv, ...more],
        terminal ? { ...process.env, FORCE_COLOR: '1' } : process.env,
        { terminal },
      );
      const own = argv.includes('--github')
        ? /^::(?:error|warning|notice) file=(?:policy|simple)\.yaml.*$/gm
        : /$^/g;
      for (const text of [out.replace(own, ''), err]) {
        const bare = terminal ? text.replace(OWN, '') : text;
        expect(NOT_PRINTABLE.exec(bare)).toBeNull();
        expect(COMMAND.exec(bare)).toBeNull();
      }
      seen += out + err;
      expect(`${out}${err}`).not.toContain('TF_INTERNAL');
      if (more.includes('--json') && out !== '') expect(JSON.parse(out)).toBeTypeOf('object');
    }
  // The name did come out, where it can be seen.
  expect(seen).toMatch(/\\u\{?202e/);
});
