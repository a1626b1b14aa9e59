import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { afterAll, describe, expect, test } from 'vitest';
import { shellWords } from '../../../../src/cli/migrate/line.js';
import { calibrationOf } from '../../../../src/engines/calibration/calibration.js';
import type { BackEnd } from '../../../../src/engines/runtime/back-end.js';
import { onnxRuntimeCpu } from '../../../../src/engines/runtime/onnxruntime/back-ends.js';
import { type EventListener, ignoreEvents } from '../../../../src/events.js';
import { forge } from '../../../../src/forge/forge.js';
import type { ForgeOptions } from '../../../../src/forge/options.js';
import { attribute as a, GraphBuilder } from '../../../../src/formats/onnx/index.js';
import { ModelProtoSchema, type TensorProto } from '../../../../src/formats/onnx/onnx_pb.js';
import { dtypes } from '../../../../src/formats/tensor/dtype.js';
import { writeNpz } from '../../../../src/formats/tensor/npz.js';
import type { Tensor } from '../../../../src/formats/tensor/tensor.js';
import { heal } from '../../../../src/products/study/heal.js';
import type { ForgeResult } from '../../../../src/report/forge-result.js';
import { forgeReport } from '../../../../src/report/pages/forge.js';
import { renderReport } from '../../../../src/report/pages/report.js';
import { nextOf } from '../../../../src/report/sentences.js';
import { floats, noise, written } from '../../../formats/precision/judge.js';
import { dryRunIn } from '../../../support/dry-run.js';
import { describeWith } from '../../../support/needs.js';
import { noted } from '../../../support/noted-library.js';
import { trtforge } from '../../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-heal-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const environment = { ...process.env, TENSORRT_CACHE_DIR: at('store') };

/** Layers whose last value is multiplied by 600 twice: the second product is beyond FP16, unless `by` is small. */
function overflowing({ by = 600, seed = 1, named = true } = {}): Promise<string> {
  const g = new GraphBuilder('overflowing');
  g.input('x', 'float32', [4, 8]);
  let value = 'x';
  for (const layer of [0, 1, 2]) {
    g.initializer(`w${layer}`, noise([8, 8], 0.5, seed + layer));
    const made = g.node('MatMul', {
      name: `product${layer}`,
      inputs: [value, `w${layer}`],
      outputs: [`p${layer}`],
    });
    value = g.node('Tanh', { name: `bend${layer}`, inputs: [made], outputs: [`t${layer}`] });
  }
  g.initializer('k', floats([], [by]));
  const name = (text: string) => (named ? { name: text } : {});
  g.node('Mul', { ...name('first'), inputs: [value, 'k'], outputs: ['large'] });
  g.node('Mul', { ...name('second'), inputs: ['large', 'k'], outputs: ['y'] });
  g.output('y', 'float32', [4, 8]);
  return written(g);
}

/** Four convolutions; the first channel that `sensitive` reads is that much larger than the others, of which its codes leave nothing. */
function sensitive({ by = 3000, channels = 16 } = {}): Promise<string> {
  const g = new GraphBuilder('sensitive');
  g.input('x', 'float32', ['n', channels, 8, 8]);
  let value = 'x';
  for (const [index, name] of ['first', 'second', 'sensitive', 'last'].entries()) {
    if (name === 'sensitive') {
      g.initializer('scales', floats([1, channels, 1, 1], [by, ...Array<number>(channels - 1).fill(1)]));
      value = g.node('Mul', { name: 'scale', inputs: [value, 'scales'], outputs: ['scaled'] });
    }
    const weight = noise([channels, channels, 3, 3], 0.15, index + 1);
    const values = new Float32Array(weight.bytes.buffer.slice(0));
    if (name === 'sensitive')
      for (let row = 0; row < channels; row++) values.fill(0, 9 * channels * row, 9 * channels * row + 9);
    g.initializer(`${name}.weight`, { ...weight, bytes: new Uint8Array(values.buffer) });
    const made = g.node('Conv', {
      ...{ name, inputs: [value, `${name}.weight`], outputs: [`${name}.out`] },
      attributes: { pads: a.ints([1, 1, 1, 1]) },
    });
    value = g.node('Tanh', { name: `${name}.tanh`, inputs: [made], outputs: [`${name}.tanh.out`] });
  }
  g.output(value, 'float32', ['n', channels, 8, 8]);
  return written(g);
}

function samples(count: number, channels = 16): string {
  const path = at(`samples-${count}-${channels}.npz`);
  writeNpz(path, new Map<string, Tensor>([['x', noise([count, channels, 8, 8], 1, 5)]]));
  return path;
}

let runs = 0;
/** Without an engine, which no test here is about but those that build. */
const healing = (options: ForgeOptions, emit: EventListener = ignoreEvents, signal?: AbortSignal) =>
  forge(
    { skip: ['build'], heal: 300_000, runRoot: at(`run-${runs++}`), ...options },
    { emit, signal, healer: heal },
  );

const origins = ({ verification }: ForgeResult) =>
  verification!.samplesFrom!.samples.map(({ origin }) => origin);

describeWith('toolchain', 'a conversion to FP16 that overflows', () => {
  test('fails with the line that heals it, which then builds an engine that passes', async () => {
    const model = await overflowing();
    const root = at("it's an overflow");
    const words = [
      'forge',
      model,
      '--precision',
      'fp16',
      '--target',
      'tensorrt-rtx:sm_89',
      '--run-root',
      root,
    ];
    const failed = await trtforge(words, environment);
    expect(failed.exitCode).toBe(1);
    const [, next = ''] = /^Next: (.*)$/m.exec(failed.out) ?? [];
    expect(shellWords(next)).toEqual(['trtforge', ...words, '--heal']);
    const before = JSON.parse(readFileSync(join(root, 'report.json'), 'utf8')) as ForgeResult;

    const healed = await trtforge([...shellWords(next).slice(1), '--json'], environment);
    expect(healed.exitCode).toBe(0);
    const result = healed.json<ForgeResult>();
    expect(result.heal).toMatchObject({
      outcome: 'found',
      raised: [{ nodes: ['second'], to: 'fp32', option: 'keep-nodes' }],
      isSmallest: true,
      isUnseen: true,
    });
    expect(result.conversion?.kept.map(({ node }) => node)).toEqual(['second']);
    expect(result.verification).toMatchObject({ outcome: 'pass', reference: model, seed: 1 });
    expect(result.build?.passport.identity.digest).not.toBe(before.build?.passport.identity.digest);
    expect(existsSync(result.engine!)).toBe(true);
    const [of, own, fp32] = result.heal!.prices;
    expect([of, own, fp32].map((price) => price?.nodes)).toEqual(
      [0, 1, 8].map((higher) => ({ higher, all: 8 })),
    );
    expect(of!.flops).toBe(0);
    expect(own!.flops).toBeGreaterThan(0);
    expect(own!.flops).toBeLessThan(0.1);
    expect(fp32).toMatchObject({ what: 'fp32', flops: 1, gpuMs: null });
    expect(of!.engineBytes).toBe(before.build?.passport.plan.bytes);
    expect(own!.engineBytes).toBe(result.build?.passport.plan.bytes);
    expect(fp32!.engineBytes).toBeGreaterThan(0);
    const page = renderReport({ kind: forgeReport, result }, 'markdown').content;
    expect(page).toMatch(/\| healed \| 1 of 8 \|/);
  });

  test('is not touched where it passes', async () => {
    const model = await overflowing({ by: 2 });
    const words = ['--precision', 'fp16', '--target', 'tensorrt-rtx:sm_89', '--run-root', at('healthy')];
    const { exitCode, json } = await trtforge(
      ['forge', model, ...words, '--heal', '2m', '--json'],
      environment,
    );
    expect(exitCode).toBe(0);
    expect(json<ForgeResult>()).toMatchObject({ heal: null, verification: { seed: 0, outcome: 'pass' } });
    expect(existsSync(join(at('healthy'), 'heal'))).toBe(false);
  });
});

describe('what is healed', () => {
  test('nodes without names too', async () => {
    const result = await healing({ model: await overflowing({ named: false }), precision: 'fp16' });
    expect(result).toMatchObject({ exitCode: 0, heal: { outcome: 'found', raised: [{ nodes: ['Mul:y'] }] } });
  });

  test.each([
    ['int8', { by: 3000, channels: 16 }],
    ['fp8', { by: 60_000, channels: 32 }],
  ] as const)(
    'a node of %s that its codes break: it gets none, the others keep theirs',
    async (precision, shape) => {
      const calibration = calibrationOf({ data: [samples(32, shape.channels)], part: 'calibration' });
      const options = { model: await sensitive(shape), precision, conversion: { calibration } };
      const failed = await healing({ ...options, heal: undefined });
      expect([failed.error, failed.verification?.outcome]).toEqual([null, 'fail']);
      expect(failed).toMatchObject({ exitCode: 1, heal: null });
      const result = await healing(options);
      expect(result.heal).toMatchObject({ outcome: 'found', raised: [{ to: 'fp16' }], isUnseen: true });
      expect(result.heal!.raised[0]!.nodes).toContain('sensitive');
      expect(result.exitCode).toBe(0);
      const quantized = result.conversion!.quantization!.nodes.filter((node) => node.quantized);
      expect(quantized.map(({ node }) => node)).not.toContain('sensitive');
      expect(quantized.length).toBeGreaterThan(0);
      // Those of the verdict are a part of those that the ranges are not made of.
      expect(origins(failed)).toEqual(expect.arrayContaining(origins(result)));
      expect(origins(result).length).toBeLessThan(origins(failed).length);
    },
  );

  test.each([4, 8])(
    'by %d samples of the user: the verdict is by two that the search has not seen',
    async (count) => {
      const result = await healing({
        ...{ model: await overflowing(), precision: 'fp16' },
        verify: { data: { files: [await npzOf(count)] } },
      });
      expect(result).toMatchObject({
        exitCode: 0,
        heal: { isUnseen: true, raised: [{ nodes: ['second'] }] },
      });
      expect(result.verification!.samplesFrom!.samples).toHaveLength(2);
    },
  );

  test.each([
    ['too few samples', 2, false],
    ['copies of one', 4, true],
  ] as const)('with %s none can be held out and nothing is proven', async (_, count, areCopies) => {
    const result = await healing({
      ...{ model: await overflowing(), precision: 'fp16' },
      verify: { data: { files: [await npzOf(count, areCopies)] } },
    });
    expect(result).toMatchObject({
      exitCode: 4,
      verdict: { outcome: 'inconclusive' },
      heal: { outcome: 'found', isUnseen: false, isSmallest: true },
    });
  });
});

/** So many samples of what `overflowing` takes. */
async function npzOf(count: number, areCopies = false): Promise<string> {
  const path = at(`overflow-${count}-${areCopies}`);
  for (let index = 0; index < count; index++)
    writeNpz(
      `${path}/${index}.npz`,
      new Map<string, Tensor>([['x', noise([4, 8], 1, areCopies ? 7 : index)]]),
    );
  return path;
}

describe('a search that ends', () => {
  test.each(['fp16', 'int8'] as const)(
    'with its time in %s: inconclusive with the best found, and the same run goes on',
    async (precision) => {
      const calibration = calibrationOf({ data: [samples(16)], part: 'calibration' });
      const options = {
        model: precision === 'fp16' ? await overflowing() : await sensitive(),
        ...{ precision, conversion: precision === 'fp16' ? {} : { calibration }, heal: 1 },
        runRoot: at(`ended-${precision}`),
      };
      const first = await healing(options);
      expect(first).toMatchObject({
        ...{ exitCode: 4, verdict: { outcome: 'inconclusive' } },
        heal: { outcome: 'ended', isSmallest: false, raised: [], tried: 1 },
      });
      expect(nextOf({ ...first, repeat: 'trtforge forge x.onnx --heal 1s' })).toEqual([
        'trtforge forge x.onnx --heal 1s',
      ]);
      const ends = [first];
      // Each tries one candidate at least.
      while (ends.at(-1)!.exitCode === 4) {
        ends.push(await healing(options));
        expect(ends.at(-1)!.heal!.tried).toBeGreaterThan(ends.at(-2)!.heal!.tried);
      }
      const [whole, best] = [ends.at(-1)!, ends.at(-2)!];
      expect(whole).toMatchObject({ exitCode: 0, heal: { outcome: 'found', isSmallest: true } });
      expect(best).toMatchObject({
        ...{ exitCode: 4, verdict: { outcome: 'inconclusive' }, verification: { outcome: 'pass' } },
        heal: { outcome: 'found', isSmallest: false, isUnseen: true },
      });
      const raised = ({ heal: found }: ForgeResult) => found!.raised[0]!.nodes.length;
      expect(raised(best)).toBeGreaterThanOrEqual(raised(whole));
    },
  );

  test.each([
    ['fp16', 'candidates.json'],
    ['int8', 'choices.json'],
  ] as const)('by Ctrl-C in %s: what was tried counts in the next run', async (precision, file) => {
    const calibration = calibrationOf({ data: [samples(16)], part: 'calibration' });
    const options = {
      model: precision === 'fp16' ? await overflowing() : await sensitive(),
      ...{
        precision,
        conversion: precision === 'fp16' ? {} : { calibration },
        runRoot: at(`stopped-${precision}`),
      },
    };
    const path = join(options.runRoot, 'heal', '1', file);
    const trials = (): readonly unknown[] =>
      existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).trials : [];
    const stop = new AbortController();
    const stopped = await healing(options, () => trials().length >= 2 && stop.abort(), stop.signal);
    expect(stopped.error?.code).toBe('TF_CANCELLED');
    const before = trials();
    expect(before.length).toBeGreaterThanOrEqual(2);
    const whole = await healing(options);
    expect(whole.heal?.outcome).toBe('found');
    expect(trials().slice(0, before.length)).toEqual(before);
    expect(trials().length).toBeGreaterThan(before.length);
  });
});

/** Runs models on ONNX Runtime, each but the original with a weight that is damaged, as a wrong rule of conversion would leave it. */
function damaging(original: string, weight: string, damage: (tensor: TensorProto) => void): BackEnd {
  const open: BackEnd['open'] = async (path, ...rest) => {
    if (path === original) return onnxRuntimeCpu.open(path, ...rest);
    const model = fromBinary(ModelProtoSchema, readFileSync(path));
    const found = model.graph!.initializer.filter(({ name }) => name.startsWith(weight));
    expect(found).not.toHaveLength(0);
    found.forEach(damage);
    const copy = at(`damaged-${runs++}.onnx`);
    writeFileSync(copy, toBinary(ModelProtoSchema, model));
    return onnxRuntimeCpu.open(copy, ...rest);
  };
  return { ...onnxRuntimeCpu, open };
}

describe('a fault in the weights is never healed', () => {
  const faults = {
    negated: ({ dataType, rawData }: TensorProto) => {
      const size = dataType === dtypes.float32.onnx ? 4 : 2;
      for (let index = size - 1; index < rawData.length; index += size) rawData[index]! ^= 0x80;
    },
    lost: ({ rawData }: TensorProto) => void rawData.fill(0),
  };
  test.each([
    ['fp16', 'negated'],
    ['fp16', 'lost'],
    ['int8', 'lost'],
  ] as const)('%s, %s', async (precision, fault) => {
    const isCoded = precision === 'int8';
    const model = isCoded ? await sensitive() : await overflowing();
    const calibration = calibrationOf({ data: [samples(16)], part: 'calibration' });
    const conversion = isCoded ? { calibration } : {};
    const back = damaging(model, isCoded ? 'first.weight' : 'w1', faults[fault]);
    const result = await forge(
      { model, precision, conversion, skip: ['build'], heal: 300_000, runRoot: at(`run-${runs++}`) },
      { healer: heal, backEnds: [back] },
    );
    expect(result).toMatchObject({ exitCode: 1, verdict: { outcome: 'fail' }, heal: { outcome: 'none' } });
    expect(result.heal!.tried).toBeGreaterThan(1);
  });
});

test('a failure in a program, which has no command line, has a line that searches as well', async () => {
  const options = { precision: 'fp16', skip: ['build'], runRoot: at("a program's") } as const;
  const failed = await noted.forge({ model: await overflowing(), ...options });
  const [next = ''] = nextOf(failed);
  const [, ...words] = shellWords(next);
  const { exitCode } = await trtforge([...words, '-o', at('found'), '--json']);
  expect([words[0], exitCode]).toEqual(['bisect', 0]);
});

test('without a product that searches a failure stays one', async () => {
  const options = { precision: 'fp16', skip: ['build'], heal: 300_000, runRoot: at('nobody') } as const;
  const result = await forge({ model: await overflowing(), ...options });
  expect(result).toMatchObject({ exitCode: 1, heal: null, verdict: { outcome: 'fail' } });
});

describe('the option', () => {
  test('has a step in a dry run, where it is asked for', async () => {
    const words = ['forge', await overflowing(), '--precision', 'fp16', '--skip', 'build'];
    const steps = async (more: readonly string[]) =>
      (await dryRunIn(folder, [...words, ...more], environment)).does;
    expect(await steps(['--heal'])).toContain('(heal)');
    expect(await steps([])).not.toContain('(heal)');
  });

  test.each(['model.onnx', '5', '0s', '5 minutes', 'm'])('is a time, not %s', async (limit) => {
    const { exitCode, json } = await trtforge(['forge', 'x.onnx', '--heal', limit, '--json']);
    expect([exitCode, json().error?.code]).toEqual([2, 'TF_USAGE']);
  });

  test('is not the model: where the next word is, the line that is meant is in the error', async () => {
    const model = await overflowing();
    const more = ['--precision', 'fp16', '--skip', 'build', '--run-root', at('meant'), '--json'];
    const { exitCode, json } = await trtforge(['forge', '--heal', model, ...more]);
    expect([exitCode, json().error?.code]).toEqual([2, 'TF_USAGE']);
    const [, line = ''] = /^Run: (.*)$/.exec(json().error!.remedy) ?? [];
    expect(shellWords(line)).toEqual(['trtforge', 'forge', ...more, model, '--heal']);
    const meant = await trtforge(shellWords(line).slice(1));
    expect(meant.json<ForgeResult>()).toMatchObject({ exitCode: 0, heal: { outcome: 'found' } });
  });

  test.each([
    ['true', 300_000],
    ['90s', 90_000],
    ['1.5h', 5_400_000],
    ['false', undefined],
  ])('is a key of a configuration file: %s', async (value, limitMs) => {
    const config = at('heal.config.yaml');
    writeFileSync(config, `heal: ${value}\n`);
    const root = at(`config-${value}`);
    const words = [
      'forge',
      await overflowing(),
      '--precision',
      'fp16',
      '--skip',
      'build',
      '--run-root',
      root,
    ];
    const { json } = await trtforge([...words, '--config', config, '--json'], environment);
    expect(json<ForgeResult>().heal?.limitMs).toBe(limitMs);
  });

  test('is one of the library', async () => {
    const options = { precision: 'fp16', skip: ['build'], heal: 300_000, runRoot: at('library') } as const;
    const result = await noted.forge({ model: await overflowing(), ...options });
    expect(result).toMatchObject({ exitCode: 0, heal: { outcome: 'found' } });
  });
});
