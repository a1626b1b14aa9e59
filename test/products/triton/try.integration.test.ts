import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { passportPath } from '../../../src/engines/identity/passport.js';
import { floatTensor } from '../../../src/formats/tensor/values.js';
import { type ModelConfig, printModelConfig } from '../../../src/products/triton/model-config.js';
import { recordAnswer } from '../../../src/quality/known-answer/record.js';
import { affineModel, fakeIdentity } from '../../fakes/tensorrt/affine.js';
import { samplePassport, samplePlan } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-triton-url-'));
const config: ModelConfig = {
  name: 'affine',
  backend: 'tensorrt',
  max_batch_size: 64,
  input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [4] }],
  output: [{ name: 'y', data_type: 'TYPE_FP32', dims: [4] }],
};

/** What the server makes of an element, and what it says where it refuses. */
let model: { readonly of: (x: number) => number; readonly refusal?: string; readonly ready?: boolean };
let server: Server;
let url: string;

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

/** y = 2x + 1 behind the V2 protocol, as a server with a real engine would answer. */
beforeAll(async () => {
  server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const json = (content: unknown, status = 200) => response.writeHead(status).end(JSON.stringify(content));
    if (request.url === '/v2') return json({ name: 'triton', version: '2.99.0' });
    if (request.url === '/v2/models/affine/ready')
      return response.writeHead(model.ready === false ? 400 : 200).end();
    if (request.url === '/v2/repository/index')
      return json([{ name: 'affine', state: 'UNAVAILABLE', reason: 'no plan' }]);
    if (request.url === '/v2/models/affine/config') return json(config);
    if (model.refusal !== undefined) return json({ error: model.refusal }, 400);
    const headerBytes = Number(request.headers['inference-header-content-length']);
    const { inputs } = JSON.parse(body.toString('utf8', 0, headerBytes));
    const x = new Float32Array(
      body.buffer.slice(body.byteOffset + headerBytes, body.byteOffset + body.length),
    );
    const y = Buffer.from(floatTensor('float32', inputs[0].shape, x.map(model.of)).bytes);
    const parameters = { binary_data_size: y.length };
    const header = JSON.stringify({
      outputs: [{ name: 'y', datatype: 'FP32', shape: inputs[0].shape, parameters }],
    });
    response.setHeader('Inference-Header-Content-Length', Buffer.byteLength(header));
    return response.end(Buffer.concat([Buffer.from(header), y]));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const knownAnswer = await recordAnswer({
    reference: await affineModel(),
    precision: 'tf32',
    profiles: [{ x: { min: [1, 4], opt: [8, 4], max: [64, 4], values: false } }],
  });
  const own = join(folder, 'repo', 'affine');
  mkdirSync(join(own, '1'), { recursive: true });
  writeFileSync(join(own, 'config.pbtxt'), printModelConfig(config));
  const plan = samplePlan();
  writeFileSync(join(own, '1', 'model.plan'), plan);
  const passport = { ...samplePassport(plan, fakeIdentity()), knownAnswer };
  writeFileSync(passportPath(join(own, '1', 'model.plan')), JSON.stringify(passport));
}, 300_000);
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function attempt(behaviour: typeof model, address = url) {
  model = behaviour;
  const { exitCode, json } = await trtforge([
    'triton',
    'try',
    join(folder, 'repo'),
    '--url',
    address,
    '--json',
  ]);
  return { exitCode, answer: json() };
}

describe('a live server', () => {
  it('gives the known answer of its engine over HTTP', async () => {
    expect(await attempt({ of: (x) => 2 * x + 1 })).toMatchObject({
      exitCode: 0,
      answer: {
        outcome: 'pass',
        server: { version: 'triton 2.99.0', url, answeredBy: 'server' },
        models: [{ ready: true, request: { inputs: [{ name: 'x' }] }, knownAnswer: { outcome: 'pass' } }],
      },
    });
  });

  it('fails where another engine is served', async () => {
    expect(await attempt({ of: (x) => 2 * x - 1 })).toMatchObject({
      exitCode: 1,
      answer: { outcome: 'fail', models: [{ knownAnswer: { outcome: 'fail' } }] },
    });
  });

  it('fails with the words of a server that refuses', async () => {
    expect(await attempt({ of: (x) => x, refusal: 'unexpected shape' })).toMatchObject({
      exitCode: 1,
      answer: {
        models: [{ ready: true, request: null, reason: expect.stringContaining('unexpected shape') }],
      },
    });
    expect(await attempt({ of: (x) => x, ready: false })).toMatchObject({
      exitCode: 1,
      answer: { models: [{ ready: false, reason: 'no plan' }] },
    });
  });

  it('is named where nobody answers', async () => {
    expect(await attempt({ of: (x) => x }, 'http://127.0.0.1:1')).toMatchObject({
      exitCode: 3,
      answer: { error: { code: 'TF_TRITON_UNAVAILABLE' } },
    });
  });
});

it('rejects a folder without models', async () => {
  const { exitCode, json } = await trtforge(['triton', 'try', folder, '--json']);
  expect({ exitCode, code: json().error?.code }).toEqual({ exitCode: 2, code: 'TF_USAGE' });
});
