import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parseProfile } from '../../../src/engines/profiles/profile.js';
import { ignoreEvents } from '../../../src/events.js';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { readComponent } from '../../../src/products/bundle/component.js';
import { forgeBundle } from '../../../src/products/bundle/forge-bundle.js';
import { explainImpossibleProfile, impossibleLine } from '../../../src/products/bundle/impossible-profile.js';
import { describeWith, found } from '../../support/needs.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-impossible-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** x [batch, time] reshaped to [-1, 8, 8]: the exporter fixed 64 elements a row, so time must make the product a multiple of 64. */
const graph = new GraphBuilder('fixed');
graph.input('x', 'float32', ['batch', 'time']);
graph.initializer('target', {
  dtype: 'int64',
  shape: [3],
  bytes: new Uint8Array(new BigInt64Array([-1n, 8n, 8n]).buffer),
});
graph.node('Reshape', { name: 'view', inputs: ['x', 'target'], outputs: ['rows'] });
graph.node('Relu', { name: 'relu', inputs: ['rows'], outputs: ['y'] });
graph.output('y', 'float32', [null, 8, 8]);
const onnx = join(folder, 'fixed.onnx');
await writeModel(buildModel(graph), onnx, { externalData: 'never' });
const component = readComponent({ name: 'fixed', onnx });
const context = { emit: ignoreEvents, environment: process.env };

describe('what a builder says of shapes that cannot pass through the graph', () => {
  test.each([
    '(IShuffleLayer view: reshape changes volume to multiple of original non-zero volume. Reshaping [1,16] to [8,8].)',
    'Error Code 4: API Usage Error (IShuffleLayer fixed: reshape wildcard -1 has no integer solution. Reshaping [1,16] to [-1,8,8].',
    'kMAX values for profile 0 violate shape constraints: IShuffleLayer view: reshaping failed for tensor: x',
    'Profile kMIN values are not self-consistent. IShuffleLayer fixed: reshaping failed for tensor: x Reshape dimension of -1 has no solution.',
  ])('is known: %s', (line) =>
    expect(impossibleLine(['Make sure input x has Int64 binding.', `before\n${line}`])).toBe(line),
  );

  test('is not seen in other lines', () =>
    expect(impossibleLine(['Reshape took 4 ms', 'out of memory'])).toBeUndefined());
});

describeWith('onnxruntime', 'an impossible profile', () => {
  test.each([
    [
      'the smallest time',
      'x:1x16/1x64/1x256',
      'kMIN',
      /axis 1 \("time"\) of input "x" = 16 \(min\) cannot pass at the node "view"/,
    ],
    ['the largest time', 'x:1x64/1x64/1x100', 'kMAX', /axis 1 \("time"\) of input "x" = 100 \(max\)/],
    [
      'every size',
      'x:1x16/1x16/1x16',
      'x',
      /"batch"\) of input "x" = 1 \(min\) together with axis 1 \("time"\) of input "x" = 16/,
    ],
  ])('is explained by the input and the dimension: %s', async (_, profile, end, message) => {
    const line = `Profile ${end} values are not self-consistent. IShuffleLayer view: reshaping failed for tensor: x`;
    const error = await explainImpossibleProfile(component, parseProfile(profile), line, context);
    expect(error.code).toBe('TF_PROFILE_INVALID');
    expect(error.message).toMatch(message);
    expect(error.message).toContain(line);
  });
});

describe('an impossible profile of a model that cannot be run', () => {
  test('is still an error that names the node and quotes the builder', async () => {
    const gone = { ...component, onnx: join(folder, 'gone.onnx') };
    const line = '(IShuffleLayer view: reshape changes volume. Reshaping [1,16] to [8,8].)';
    const error = await explainImpossibleProfile(gone, parseProfile('x:1x16'), line, context);
    expect(error.message).toMatch(
      /one of its dimensions cannot pass at the node "view"\. The builder reports: .*reshape changes volume/,
    );
  });
});

describeWith('toolchain', 'a real build with an impossible profile', () => {
  test.each([
    ['that the builder refuses', '16/16/16'],
    ['that it lets pass with a warning', '16/64/256'],
  ])('%s ends as one error, and no engine is left', async (_, time) => {
    const meta = join(folder, 'model_meta.json');
    writeFileSync(meta, '{}');
    const profilesFile = join(folder, 'profiles.yaml');
    writeFileSync(profilesFile, `components: { fixed: { symbols: { time: ${time} } } }`);
    const outdir = join(folder, time.replaceAll('/', '-'));
    const report = await forgeBundle({
      meta,
      outdir,
      profilesFile,
      target: 'tensorrt-rtx:sm_89',
      store: false,
    });
    expect(report.error).toMatch(/^TF_PROFILE_INVALID: /);
    expect(report.failure?.component).toBe('fixed');
    if (found('onnxruntime') !== undefined)
      expect(report.failure?.message).toMatch(/axis 1 \("time"\) of input "x" = 16/);
    expect(existsSync(join(outdir, 'fixed.engine'))).toBe(false);
    expect(readFileSync(report.components[0]!.logs.build!, 'utf8')).toMatch(/reshape/i);
  });
});
