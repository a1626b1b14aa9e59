import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { passportPath } from '../../../src/engines/identity/engine-name.js';
import { floatTensor } from '../../../src/formats/tensor/tensor.js';
import { type ModelConfig, printModelConfig } from '../../../src/products/triton/model-config.js';
import { tryRepository } from '../../../src/products/triton/try/try.js';
import type { KnownAnswer } from '../../../src/quality/known-answer/answer.js';
import { recordAnswer } from '../../../src/quality/known-answer/record.js';
import { affineModel, fakeIdentity } from '../../fakes/tensorrt/affine.js';
import {
  detections,
  detectorFaults,
  detectorProfiles,
  detectorShape,
  writeDetector,
} from '../../quality/known-answer/faulty-engine.js';
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

const detectorConfig: ModelConfig = {
  name: 'detector',
  backend: 'tensorrt',
  input: [{ name: 'features', data_type: 'TYPE_FP32', dims: [1, 8] }],
  output: [{ name: 'output0', data_type: 'TYPE_FP32', dims: detectorShape }],
};

/** What the server makes of an element, and what it says where it refuses. */
let model: {
  readonly of: (x: number) => number;
  readonly refusal?: string;
  readonly ready?: boolean;
  /** Of what the detector gives. */
  readonly change?: (output: Float32Array) => void;
};
let server: Server;
let url: string;

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

/** y = 2x + 1, and the detector, behind the V2 protocol, as a server with real engines would answer. */
beforeAll(async () => {
  server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const json = (content: unknown, status = 200) => response.writeHead(status).end(JSON.stringify(content));
    const isDetector = request.url?.startsWith('/v2/models/detector/') === true;
    const served = isDetector ? detectorConfig : config;
    if (request.url === '/v2') return json({ name: 'triton', version: '2.99.0' });
    if (request.url?.endsWith('/ready')) return response.writeHead(model.ready === false ? 400 : 200).end();
    if (request.url === '/v2/repository/index')
      return json([{ name: 'affine', state: 'UNAVAILABLE', reason: 'no plan' }]);
    if (request.url?.endsWith('/config')) return json(served);
    if (model.refusal !== undefined) return json({ error: model.refusal }, 400);
    const headerBytes = Number(request.headers['inference-header-content-length']);
    const { inputs } = JSON.parse(body.toString('utf8', 0, headerBytes));
    const x = new Float32Array(
      body.buffer.slice(body.byteOffset + headerBytes, body.byteOffset + body.length),
    );
    const shape = isDetector ? detectorShape : inputs[0].shape;
    const values = isDetector ? detections(x) : x.map(model.of);
    if (isDetector) model.change?.(values);
    const y = Buffer.from(floatTensor('float32', shape, values).bytes);
    const parameters = { binary_data_size: y.length };
    const { name } = served.output![0]!;
    const header = JSON.stringify({ outputs: [{ name, datatype: 'FP32', shape, parameters }] });
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
  writeRepository('repo', config, knownAnswer);
  const detector = await recordAnswer({
    reference: await writeDetector(join(folder, 'detector.onnx')),
    precision: 'tf32',
    profiles: detectorProfiles,
  });
  writeRepository('detectors', detectorConfig, detector);
}, 300_000);

/** A repository of one model. */
function writeRepository(name: string, of: ModelConfig, knownAnswer: KnownAnswer): void {
  const own = join(folder, name, of.name!);
  mkdirSync(join(own, '1'), { recursive: true });
  writeFileSync(join(own, 'config.pbtxt'), printModelConfig(of));
  const plan = samplePlan();
  writeFileSync(join(own, '1', 'model.plan'), plan);
  const passport = { ...samplePassport(plan, fakeIdentity()), knownAnswer };
  writeFileSync(passportPath(join(own, '1', 'model.plan')), JSON.stringify(passport));
}

afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function attempt(behaviour: typeof model, address = url, repository = 'repo') {
  model = behaviour;
  const { exitCode, json } = await trtforge([
    'triton',
    'try',
    join(folder, repository),
    '--url',
    address,
    '--timeout',
    '250',
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

  it('passes with a detector, and fails where its scores are 0 beside boxes in pixels', async () => {
    const attempted = (change?: (output: Float32Array) => void) =>
      attempt({ of: (x) => x, change }, url, 'detectors');
    expect(await attempted()).toMatchObject({
      exitCode: 0,
      answer: { models: [{ name: 'detector', knownAnswer: { outcome: 'pass' } }] },
    });
    expect(await attempted(detectorFaults['scores that are 0'])).toMatchObject({
      exitCode: 1,
      answer: { outcome: 'fail', models: [{ name: 'detector', knownAnswer: { outcome: 'fail' } }] },
    });
  });

  it('fails with the words of a server that rejects', async () => {
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

  it('is named where no server answers', async () => {
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

/** `tritonserver` of the PATH in one of its moods; it writes its process id, and what it was asked. */
const FAKE = `#!${process.execPath}
const { createServer } = require('node:http');
const { appendFileSync, writeFileSync } = require('node:fs');
const mood = process.env.MOOD;
if (mood === 'aborts') process.abort();
writeFileSync(process.env.NOTES + '.pid', String(process.pid));
const endless = (response) => {
  const write = () => { while (response.write('['.repeat(1 << 16))) {} };
  response.on('drain', write).on('error', () => {});
  write();
};
createServer((request, response) => {
  appendFileSync(process.env.NOTES, request.url + '\\n');
  if (mood === 'deaf') return;
  if (mood === 'endless health') return endless(response);
  if (request.url === '/v2/health/live') return response.end();
  if (mood === 'endless' && request.url === '/v2') return endless(response);
  if (mood === 'silent model' && request.url.endsWith('/config')) return;
  if (mood === 'half an answer' && request.url.endsWith('/config')) return response.write('{');
  if (mood === 'announces too much' && request.url.endsWith('/infer'))
    return response.writeHead(200, { 'Content-Length': 2 ** 40 }).write('{');
  response.end('{}');
}).listen(Number(process.argv.find((each) => each.startsWith('--http-port=')).slice(12)), '127.0.0.1');
`;

describe('a server that is started here', () => {
  let count = 0;
  const started = (mood: string) => {
    const bin = join(folder, 'bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'tritonserver'), FAKE, { mode: 0o755 });
    const notes = join(folder, `notes-${count++}`);
    writeFileSync(notes, '');
    const environment = {
      ...process.env,
      PATH: `${bin}:${process.env.PATH}`,
      MOOD: mood,
      NOTES: notes,
      XDG_CACHE_HOME: join(folder, 'cache'),
    };
    const asked = () => readFileSync(notes, 'utf8').split('\n').filter(Boolean);
    const isGone = () => {
      try {
        return !process.kill(Number(readFileSync(`${notes}.pid`, 'utf8')), 0);
      } catch {
        return true;
      }
    };
    return { environment, asked, isGone };
  };

  it.each([
    ['deaf', '/v2/health/live'],
    ['endless health', '/v2/health/live'],
    ['silent model', '/config'],
    ['half an answer', '/config'],
  ])('ends with the command that is cancelled: %s', async (mood, last) => {
    const { environment, asked, isGone } = started(mood);
    const stop = new AbortController();
    const work = tryRepository({ repository: join(folder, 'repo') }, { environment, signal: stop.signal });
    const outcome = expect(work).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    await vi.waitUntil(() => asked().at(-1)?.endsWith(last), { timeout: 240_000 });
    stop.abort();
    await outcome;
    expect(isGone()).toBe(true);
  });

  it('ends with --timeout', async () => {
    const { environment, asked, isGone } = started('deaf');
    const line = ['triton', 'try', join(folder, 'repo'), '--timeout', '5', '--json'];
    const { json } = await trtforge(line, environment);
    expect(json().error?.code).toBe('TF_TIMEOUT');
    expect([asked().length > 0, isGone()]).toEqual([true, true]);
  });

  it('is not started after a cancellation', async () => {
    const { environment, isGone } = started('deaf');
    const work = tryRepository(
      { repository: join(folder, 'repo') },
      { environment, signal: AbortSignal.abort() },
    );
    await expect(work).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    expect(isGone()).toBe(true);
  });

  it('names what ended it, which the check finds', async () => {
    const repository = join(folder, 'labels');
    mkdirSync(join(repository, 'affine', '1'), { recursive: true });
    mkdirSync(join(repository, 'affine', 'names'));
    writeFileSync(
      join(repository, 'affine', 'config.pbtxt'),
      printModelConfig({ ...config, output: [{ ...config.output![0]!, label_filename: 'names' }] }),
    );
    const { environment } = started('aborts');
    const { exitCode, json } = await trtforge(['triton', 'try', repository, '--json'], environment);
    const { error } = json<{ error: { code: string; message: string } }>();
    expect({ exitCode, code: error.code }).toEqual({ exitCode: 3, code: 'TF_TRITON_UNAVAILABLE' });
    expect(error.message).toContain('affine/config.pbtxt: output[0].label_filename');
  });

  it.each(['endless', 'announces too much'])('is read within a bound: %s', async (mood) => {
    const { environment, isGone } = started(mood);
    const line = ['triton', 'try', join(folder, 'repo'), '--json'];
    const { exitCode, json } = await trtforge(line, environment);
    expect({ exitCode, code: json().error?.code }).toEqual({ exitCode: 3, code: 'TF_TRITON_UNAVAILABLE' });
    expect(isGone()).toBe(true);
  });

  it('passes for nothing where every answer is empty', async () => {
    const { environment } = started('empty');
    const { exitCode, json } = await trtforge(['triton', 'try', join(folder, 'repo'), '--json'], environment);
    expect({ exitCode, answer: json() }).toMatchObject({
      exitCode: 4,
      answer: {
        outcome: 'inconclusive',
        models: [{ ready: true, reason: expect.any(String), request: { outputs: [] }, knownAnswer: null }],
      },
    });
    const { out } = await trtforge(['triton', 'try', join(folder, 'repo')], environment);
    expect(out).toContain('undecided');
  });
});
