import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import type { Command } from '../../../src/cli/command.js';
import { diff, layers as layersCommand } from '../../../src/cli/commands/engine.js';
import type { LayersResult } from '../../../src/engines/layers/result.js';
import { ignoreEvents } from '../../../src/events.js';
import { mutations } from '../../support/mutations.js';
import { plainColors } from '../../support/plain-colors.js';
import { samplePassport, samplePlan } from '../../support/sample-engine.js';
import { program, trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-engine-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const engine = (...args: readonly string[]) => trtforge(['engine', ...args]);
const resultOf = async <T>(...args: readonly string[]) => (await engine(...args, '--json')).json<T>();

describe('trtforge engine inspect and strip-header', () => {
  const plan = Buffer.alloc(1000);
  plan.write('vtrt');
  plan.writeBigUInt64LE(1000n, 16);
  plan.set([1, 7, 1, 116], 24);
  const json = Buffer.from(JSON.stringify({ author: 'Ultralytics' }));
  const headed = Buffer.concat([Buffer.from([json.length, 0, 0, 0]), json, plan]);

  it('shows product, version, size, digest and what stands before it, and strips that', async () => {
    const file = join(folder, 'yolo.engine');
    writeFileSync(file, headed);
    const out = join(folder, 'yolo.plan');
    expect(await resultOf('inspect', file)).toMatchObject({
      schema: 'trtforge.engine-inspect/2',
      engines: [{ version: '1.7.1.116', passport: null }],
      exitCode: 0,
    });
    expect((await engine('inspect', file)).out).toContain('Built by   TensorRT-RTX 1.7.1.116');
    expect(await resultOf('strip-header', file, '-o', out)).toMatchObject({
      schema: 'trtforge.engine-strip-header/1',
      file,
      path: out,
      bytes: plan.length,
    });
    expect(readFileSync(out).equals(plan)).toBe(true);
    expect((await engine('strip-header', file, '-o', out)).out).toContain(out);
  });

  it('shows bindings, profiles, target and identity from the passport of the plan, and of no other', async () => {
    const file = join(folder, 'known.engine');
    const bytes = samplePlan();
    writeFileSync(file, bytes);
    const { plan: facts, ...rest } = samplePassport(bytes);
    const inputs = [{ name: 'audio_signal', dtype: 'float32', shape: [1, 80, null] }];
    const passport = { ...rest, plan: { ...facts, inputs } };
    const shown = async (content: typeof passport) => {
      writeFileSync(`${file}.passport.json`, JSON.stringify(content));
      const { out } = await engine('inspect', file);
      const { plan: own, identity } = content;
      const names = [...own.inputs, ...own.outputs].map(({ name }) => name);
      return [identity.digest, 'sm_89', ...names].filter((text) => !out.includes(text));
    };
    expect(await shown(passport)).toEqual([]);
    const other = { ...passport, plan: { ...passport.plan, sha256: '0'.repeat(64) } };
    expect(await shown(other)).toContain(passport.identity.digest);
    // Two in one: each in its order, and one of another plan decides the exit code.
    const second = join(folder, 'second.engine');
    writeFileSync(second, bytes);
    writeFileSync(`${second}.passport.json`, JSON.stringify(passport));
    expect(await resultOf('inspect', second, file)).toMatchObject({
      engines: [
        { file: second, findings: [] },
        { file, findings: [{ code: 'passport-mismatch', severity: 'error' }] },
      ],
      exitCode: 1,
    });
    const { out, exitCode } = await engine('inspect', second, second);
    expect([exitCode, out.split('\n').filter((line) => line.startsWith(second)).length]).toEqual([0, 2]);
  });

  it('reports a passport that is not one', async () => {
    const file = join(folder, 'with-passport.engine');
    writeFileSync(file, plan);
    writeFileSync(`${file}.passport.json`, '{"schema": "something else"}');
    expect(await resultOf('inspect', file)).toMatchObject({
      engines: [{ passport: null, findings: [{ code: 'passport-invalid' }] }],
      exitCode: 1,
    });
  });

  it('needs a place for the plan without its header', async () => {
    const file = join(folder, 'headed.engine');
    writeFileSync(file, headed);
    const { exitCode, json } = await engine('strip-header', file, '--json');
    expect([exitCode, json().error]).toMatchObject([
      2,
      {
        code: 'TF_USAGE',
        remedy: expect.stringContaining(`trtforge engine strip-header ${file} --json -o `),
      },
    ]);
  });
});

describe('trtforge engine layers and diff', () => {
  const layers = (name: string) =>
    fileURLToPath(new URL(`../../fixtures/engine-layers/${name}.json`, import.meta.url));
  const [old, recent] = [layers('8.6-resnet50-fp16'), layers('10.6-resnet50-fp16')];

  it('lists layers, sums and copies from an exported file', async () => {
    expect(await resultOf('layers', recent)).toMatchObject({
      schema: 'trtforge.engine-layers/1',
      kind: 'layers',
      loaded: null,
    });
    const { out } = await engine('layers', recent);
    const lines = out.split('\n');
    expect(lines[0]).toBe(`${recent}  153 layers`);
    expect(lines.find((line) => line.startsWith('/conv1/Conv + /relu/Relu'))).toMatch(
      /CaskConvolution +float16 +32×64×112×112 +sm90_xmma_fprop_image_\S+ +2$/,
    );
    expect(out).toMatch(/Weights +48\.7 MiB\n/);
    expect(out).toMatch(/47 layers copy the same weights again in every run/);
  });

  it('compares two, also where one is what --json printed on another machine', async () => {
    const saved = join(folder, 'saved.json');
    writeFileSync(saved, (await engine('layers', old, '--json')).out);
    expect(await resultOf('diff', saved, recent)).toMatchObject({
      schema: 'trtforge.engine-diff/1',
      a: { file: old, layersFrom: saved },
      b: { file: recent },
      matched: 56,
    });
    const text = (await engine('diff', saved, recent)).out;
    expect(text).toMatch(/copies +49 +48 +0\.98/);
    expect(text).toMatch(/56 layers of the same ONNX nodes: 2 alike, 54 changed/);
    expect(text).toMatch(/tactic +sm80_xmma_gemm\S* → sm90_xmma_gemm/);
  });

  it('takes the size from the engine whose layers a file has', async () => {
    const plan = Buffer.alloc(64);
    plan.write('ftrt', 0, 'latin1');
    plan.writeBigUInt64LE(64n, 16);
    plan.set([10, 6, 0, 26], 24);
    const path = join(folder, 'model.engine');
    writeFileSync(path, plan);
    expect(await resultOf('layers', path, '--from', recent)).toMatchObject({ file: path, planBytes: 64 });
  });

  it('checks a file of layers against the engine it is passed for, and reports where nothing decides', async () => {
    const path = join(folder, 'small.engine');
    const plan = samplePlan();
    writeFileSync(path, plan);
    expect((await engine('layers', path, '--from', recent)).out).toMatch(
      /· note layers-unchecked {2}Nothing shows whether .*has no passport/,
    );
    const { err } = await engine('diff', path, old, '--from', recent, '--events');
    expect(err.split('\n').map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        type: 'log',
        severity: 'warning',
        message: expect.stringMatching(/^Nothing shows whether/),
      }),
    ]);
    const passport = samplePassport(plan);
    const withTensors = (input: string) => {
      const inputs = [{ name: input, dtype: 'float32', shape: [null, 3, 224, 224] }];
      const outputs = [{ name: 'logits', dtype: 'float32', shape: [null, 1000] }];
      return JSON.stringify({ ...passport, plan: { ...passport.plan, inputs, outputs } });
    };
    writeFileSync(`${path}.passport.json`, withTensors('data'));
    for (const exported of [recent, old]) {
      const { findings } = await resultOf<LayersResult>('layers', path, '--from', exported);
      expect(findings.filter(({ code }) => code.startsWith('layers-'))).toEqual([]);
    }
    writeFileSync(`${path}.passport.json`, withTensors('image'));
    for (const exported of [recent, old]) {
      expect(await resultOf('layers', path, '--from', exported)).toMatchObject({
        error: {
          code: 'TF_LAYERS_MISMATCH',
          message: expect.stringMatching(/they bind data, .*they lack its image\.$/),
        },
      });
    }
  });

  it('damaged files of layers, of either dialect or our own, are shown and compared or rejected', async () => {
    const { Layers, Bindings } = JSON.parse(readFileSync(recent, 'utf8')) as Record<string, unknown[]>;
    const tensors = [
      { Name: 'data', IOMode: 'Input', DataType: 'Half', Dimensions: [-1, 3, 224, 224], ProfileInfo: [] },
      { Name: 'logits', IOMode: 'Output', DataType: 'Float', Dimensions: [-1, 1000] },
    ];
    const some = Layers?.slice(2, 10);
    const [whole, damaged] = [join(folder, 'whole.json'), join(folder, 'damaged.json')];
    writeFileSync(whole, JSON.stringify({ Layers: some, Bindings }));
    const originals = [
      readFileSync(whole, 'utf8'),
      JSON.stringify({ Layers: some, 'I/O Tensors': tensors }),
      JSON.stringify(await resultOf('layers', whole)),
    ];
    const context = {
      commandLine: 'trtforge engine',
      emit: ignoreEvents,
      signal: new AbortController().signal,
      environment: {},
      products: program.products,
    };
    const shown = async (command: Command, ...files: readonly string[]) =>
      command.render(await command.run(files, {}, context), { line: () => {}, colors: plainColors });
    let refused = 0;
    for (const original of originals)
      for (const bytes of mutations(Buffer.from(original), 150, 5)) {
        writeFileSync(damaged, bytes);
        try {
          await shown(layersCommand, damaged);
          await shown(diff, whole, damaged);
        } catch (error) {
          expect(error).toMatchObject({ code: 'TF_LAYERS_INVALID' });
          refused++;
        }
      }
    expect(refused).toBeGreaterThan(50);
    expect(refused).toBeLessThan(440);
  });

  it.each<[string, () => readonly string[], string, RegExp]>([
    ['a model', () => ['layers', writtenFile('m.onnx', '')], 'TF_USAGE', /is not an engine/],
    [
      'a JSON of something else',
      () => ['layers', writtenFile('other.json', '{"models": []}')],
      'TF_LAYERS_INVALID',
      /`Layers`/,
    ],
    [
      'a result of ours that was changed',
      () => ['layers', writtenFile('broken.json', '{"schema": "trtforge.engine-layers/1", "kind": 7}')],
      'TF_LAYERS_INVALID',
      /kind/,
    ],
    ['layers for a file of layers', () => ['layers', recent, '--from', old], 'TF_USAGE', /is for engines/],
  ])('%s is rejected', async (_what, args, code, message) => {
    expect(await resultOf(...args())).toMatchObject({
      exitCode: 2,
      error: { code, message: expect.stringMatching(message) },
    });
  });
});

function writtenFile(name: string, content: string): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}
