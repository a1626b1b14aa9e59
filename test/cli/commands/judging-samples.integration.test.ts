import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-judging-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const path = (name: string) => join(folder, name);
const waves = (count: number, step: number) =>
  Float32Array.from({ length: count }, (_, at) => Math.sin(at * step + 1));

const g = new GraphBuilder('net');
g.input('x', 'float32', ['n', 16]);
g.initializer('w', tensorFrom('float32', [16, 16], waves(256, 1.7)));
g.node('MatMul', { name: 'first', inputs: ['x', 'w'], outputs: ['h'] });
g.node('Relu', { name: 'relu', inputs: ['h'], outputs: ['k'] });
g.node('MatMul', { name: 'last', inputs: ['k', 'w'], outputs: ['y'] });
g.output('y', 'float32', ['n', 16]);
await writeModel(buildModel(g), path('m.onnx'));
writeNpy(path('c.npy'), tensorFrom('float32', [16, 16], waves(256, 0.9)));
writeNpy(path('o.npy'), tensorFrom('float32', [5, 16], waves(80, 0.7)));

const forge = (...more: readonly string[]) =>
  trtforge([
    ...['forge', path('m.onnx'), '--precision', 'int8', '--calibration', path('c.npy')],
    ...['--skip', 'build', '--run-root', path('run'), '--json', ...more],
  ]);

it('judges a conversion by what the calibration holds out', async () => {
  expect((await forge()).json()).toMatchObject({
    conversion: { calibration: { samples: 12 } },
    verification: { samples: 4, samplesFrom: { available: 4 } },
  });
});

it('or by samples of its own, and then all of the calibration calibrates', async () => {
  expect((await forge('--inputs', path('o.npy'))).json()).toMatchObject({
    conversion: { calibration: { samples: 16 } },
    verification: { samples: 5, samplesFrom: { available: 5 } },
  });
});

it('rejects the same file for both, however it is spelled', async () => {
  const { exitCode, json } = await forge('--inputs', `${folder}/./c.npy`);
  expect(exitCode).toBe(2);
  expect(json()).toMatchObject({ error: { code: 'TF_USAGE' } });
});
