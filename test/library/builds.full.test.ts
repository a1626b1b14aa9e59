import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKeys } from '../../src/engines/store/sign-engines.js';
import { signaturePath } from '../../src/engines/store/trust.js';
import { writeNpz } from '../../src/formats/tensor/npz.js';
import type { BuildOptions, ForgeOptions } from '../../src/index.js';
import { modelFile } from '../engines/runtime/onnxruntime/models.js';
import { noise } from '../formats/precision/judge.js';
import { describeWith } from '../support/needs.js';
import { noted } from '../support/noted-library.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-library-builds-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const images = join(import.meta.dirname, '../fixtures/images');
let model: string;
let picture: string;

beforeAll(async () => {
  model = await modelFile((graph) => {
    graph.input('x', 'float32', ['batch', 64]);
    for (const [index, name] of ['first', 'second', 'y'].entries()) {
      graph.initializer(`w${index}`, noise([64, 64], 0.1, index));
      graph.node('MatMul', {
        name,
        inputs: [['x', 'first', 'second'][index]!, `w${index}`],
        outputs: [name],
      });
    }
    graph.output('y', 'float32', ['batch', 64]);
  });
  picture = await modelFile((graph) => {
    graph.input('image', 'float32', ['n', 3, 16, 16]);
    graph.initializer('kernel', noise([16, 3, 1, 1], 0.3, 2));
    graph.node('Conv', { name: 'conv', inputs: ['image', 'kernel'], outputs: ['c'] });
    graph.node('GlobalAveragePool', { name: 'pool', inputs: ['c'], outputs: ['y'] });
    graph.output('y', 'float32', ['n', 16, 1, 1]);
  });
  writeNpz(at('x.npz'), new Map([['x', noise([4, 64], 1, 5)]]));
});

const common = { target: 'tensorrt-rtx:sm_89', remote: false as const, store: false as const };

/** Each builds and gives the engine and its passport, or throws what ends the build. */
const builders: Readonly<
  Record<
    string,
    (request: BuildOptions & Pick<ForgeOptions, 'skip'>) => Promise<{ engine: string; source: string }>
  >
> = {
  buildOrLoad: (request) => noted.buildOrLoad(request),
  forge: async (request) => {
    const { build, error } = await noted.forge({
      ...request,
      runRoot: mkdtempSync(at('run-')),
      skip: ['verify', 'bench'],
    });
    if (error !== null || build === null) throw error;
    return build;
  },
};

describeWith('toolchain', 'an engine is built as it is told', () => {
  const calibrationOf = () => noted.calibrationOf({ data: [at('x.npz')], method: 'max' });

  test.each(Object.entries(builders))('by %s, in a 16-bit type', async (name, build) => {
    const output = name === 'buildOrLoad' ? { output: at('net.plan') } : {};
    const [toolchain] = await noted.findToolchains();
    const calibration = await calibrationOf();
    const { engine } = await build({
      ...{ ...common, ...output, model, precision: 'fp16', extension: 'plan', toolchain: toolchain!.name },
      profiles: ['x:1x64/2x64/4x64'],
      conversion: {
        ...{ ioTypes: 'convert', keepNodes: [/second/], initMax: 100, dataMax: 1000 },
        ...{ convertOps: new Set(['Exp']), maxReductionDepth: 1000, calibration },
      },
    });
    expect(engine).toMatch(/\.plan$/);
    const { identity, plan } = await noted.readPassport(engine);
    const recorded = identity.document.recipe.conversion;
    expect(recorded).toMatchObject({
      ...{ ioTypes: 'convert', keepNodes: ['/second/'], convertOps: ['Exp'], initMax: 100, dataMax: 1000 },
      ...{ maxReductionDepth: 1000, calibration: calibration.digest() },
    });
    expect(identity.document.recipe.profiles).toMatchObject([{ x: { opt: [2, 64] } }]);
    expect(plan.inputs).toMatchObject([{ dtype: 'float16' }]);
    await expect(
      build({ ...common, ...output, model, batch: 1, toolchain: at('none') }),
    ).rejects.toMatchObject({ code: 'TF_TOOLCHAIN_NOT_FOUND' });
  });

  test.each(Object.entries(builders))('by %s, in codes', async (name, build) => {
    const output = name === 'buildOrLoad' ? { output: at('int8.engine') } : {};
    const calibration = await calibrationOf();
    const { engine } = await build({
      ...{ ...common, ...output, model, precision: 'int8', dims: { batch: '1/2/4' } },
      conversion: { calibration, rest: 'bf16', unquantizedNodes: [/second/] },
    });
    const { identity } = await noted.readPassport(engine);
    const quantization = { rest: 'bf16', method: 'max', unquantizedNodes: ['/second/'] };
    expect(identity.document.recipe.conversion).toMatchObject({ quantization });
    expect(identity.document.recipe.profiles).toMatchObject([{ x: { max: [4, 64] } }]);
  });

  test.each(Object.entries(builders))('by %s, where no node gets the type', async (name, build) => {
    const output = name === 'buildOrLoad' ? { output: at('kept.engine') } : {};
    const request = { ...common, ...output, model, precision: 'fp16', batch: 2 } as const;
    const conversion = { keepNodes: [/./] };
    await expect(build({ ...request, conversion })).rejects.toMatchObject({
      code: 'TF_NOT_CONVERTIBLE',
    });
    const { engine } = await build({ ...request, conversion: { ...conversion, allowUnconverted: true } });
    expect(existsSync(engine)).toBe(true);
  });

  test.each(Object.entries(builders))('by %s, with signatures', async (name, build) => {
    const keys = makeKeys(at(`${name}.pem`));
    const request = { ...common, model, batch: 2, store: at(`store-${name}`) };
    const signed = await build({ ...request, signKey: keys.privateKey });
    expect(signed.source).toBe('built');
    const required = { requireSignature: true, trustKeys: [keys.publicKey] };
    expect((await build({ ...request, ...required })).source).toBe('local');
    const layers = [request.store];
    const shared = await build({ ...request, ...required, store: at(`empty-${name}`), layers });
    expect(shared.source).toBe('local');
    const stranger = makeKeys(at(`${name}-other.pem`));
    const again = await build({
      ...{ ...request, ...required, trustKeys: [stranger.publicKey], signKey: stranger.privateKey },
    });
    expect(again.source).toBe('built');
    expect(existsSync(signaturePath(again.engine))).toBe(true);
  });

  test('and judged by the options of forge', async () => {
    const request = { ...common, model: picture, precision: 'fp16', skip: ['build', 'bench'] } as const;
    const judged = async (verify: NonNullable<ForgeOptions['verify']>) => {
      const { verification, error } = await noted.forge({
        ...request,
        runRoot: mkdtempSync(at('run-')),
        verify,
      });
      expect(error).toBeNull();
      return verification;
    };
    const drawn = await judged({
      ...{ shapes: new Map([['image', [3, 3, 16, 16]]]), threads: 1, seed: 7, samples: 2 },
      ranges: [{ name: 'image', low: 5, high: 6 }],
      atol: [{ name: null, value: 0.5 }],
      rtol: [{ name: null, value: 0.25 }],
    });
    expect(drawn).toMatchObject({
      ...{ seed: 7, inputs: [{ shape: [3, 3, 16, 16], from: '5 to 6, as requested' }] },
      outputs: [{ tolerance: { absolute: 0.5, relative: 0.25 } }],
    });
    const names = ['alpha.png', 'baseline.jpg', 'lossy.webp', 'deep.png', 'full-chroma.jpg', 'grey.jpg'];
    const files = names.map((name) => join(images, name));
    const data = { files, preprocess: 'yolo', imgsz: 16 };
    const all = await judged({ data });
    expect(all?.samplesFrom).toMatchObject({ available: 6 });
    const part = await judged({ data: { ...data, part: 'held-out' } });
    expect(part?.samplesFrom?.available).toBeLessThan(6);
    const other = await judged({ data: { ...data, preprocess: 'imagenet' } });
    expect(other?.outputs[0]?.sides).not.toEqual(all?.outputs[0]?.sides);
    const shape = [1, 3, 32, 32];
    const profiles = [{ image: { min: shape, opt: shape, max: shape, values: false } }];
    const outside = await judged({ data: { ...data, profiles } });
    expect(outside?.samplesFrom?.samples.map(({ kind }) => kind)).not.toContain('data');
  });
});
