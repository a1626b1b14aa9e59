import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { contextModel, contextModelExporter } from '../../../src/engines/exports/context-model.js';
import { writeExport } from '../../../src/engines/exports/exporter.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { wrappedPlanIn } from '../../../src/engines/plan/context-model.js';
import {
  isEngineFile,
  planDigest,
  readPlanHeader,
  stripForeignHeader,
} from '../../../src/engines/plan/header.js';
import { openOrtSession } from '../../../src/engines/runtime/onnxruntime/ort-session.js';
import { noTrust } from '../../../src/engines/store/trust.js';
import { TrtforgeError } from '../../../src/errors.js';
import { attribute, buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { factsOfModel } from '../../../src/formats/onnx/index.js';
import { ModelProtoSchema } from '../../../src/formats/onnx/onnx_pb.js';
import { runs } from '../../support/runs.js';
import { samplePlan, writeSample } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-context-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

/** A model as ONNX Runtime's TensorRT provider dumps it. */
function dumped(content: Uint8Array | string, { embedMode = 1, nodes = 1, mainContext = 1 } = {}): Buffer {
  const graph = new GraphBuilder('g');
  graph.input('x', 'float32', ['n', 2]);
  for (let index = 0; index < nodes; index++)
    graph.node('EPContext', {
      name: `TRTKernel_${index}`,
      domain: 'com.microsoft',
      inputs: ['x'],
      outputs: [`y${index}`],
      attributes: {
        main_context: attribute.int(mainContext),
        embed_mode: attribute.int(embedMode),
        ep_cache_context: () => ({ type: 3, s: Buffer.from(content) }),
        partition_name: attribute.string('TRTKernel'),
      },
    });
  graph.output('y0', 'float32', ['n', 2]);
  return Buffer.from(toBinary(ModelProtoSchema, buildModel(graph, { opsets: { 'com.microsoft': 1 } }).proto));
}

function file(bytes: Uint8Array): string {
  const path = join(folder, `${files++}.onnx`);
  writeFileSync(path, bytes);
  return path;
}
const codeOf = (action: () => unknown): string | undefined => {
  try {
    action();
    return undefined;
  } catch (error) {
    if (error instanceof TrtforgeError) return error.code;
    throw error;
  }
};

const plan = Buffer.from(samplePlan());

describe('a model that wraps an engine', () => {
  it('has the plan inside: its header and digest are the plan’s, and it is taken out', () => {
    const path = file(dumped(plan));
    const header = readPlanHeader(path);
    expect(header).toMatchObject({
      path,
      planBytes: plan.length,
      foreignHeader: { kind: 'onnxruntime', content: { node: 'TRTKernel_0' } },
    });
    expect(planDigest(header)).toBe(createHash('sha256').update(plan).digest('hex'));
    const alone = join(folder, 'alone.plan');
    stripForeignHeader(path, alone);
    expect(readFileSync(alone)).toEqual(plan);
    // It is a model all the same: ONNX Runtime runs it.
    expect(isEngineFile(path)).toBe(false);
  });

  it('has the plan beside it', async () => {
    const named = join(folder, 'beside.engine');
    writeFileSync(named, plan);
    const path = file(dumped('beside.engine', { embedMode: 0 }));
    expect(readPlanHeader(path)).toMatchObject({ path: named, planOffset: 0, foreignHeader: null });
    expect(codeOf(() => stripForeignHeader(path, join(folder, 'no.plan')))).toBe('TF_USAGE');
    const { json } = await trtforge(['engine', 'inspect', path, '--json']);
    expect(json().engines).toMatchObject([{ file: named, planBytes: plan.length }]);
  });

  it('names no plan through a link that leaves its folder, and one through a link that stays', () => {
    const outside = mkdtempSync(join(tmpdir(), 'trtforge-outside-'));
    writeFileSync(join(outside, 'plan.engine'), plan);
    writeFileSync(join(folder, 'inside.engine'), plan);
    symlinkSync(join(outside, 'plan.engine'), join(folder, 'leaving.engine'));
    symlinkSync('inside.engine', join(folder, 'staying.engine'));
    const codeOfLink = (name: string) => codeOf(() => readPlanHeader(file(dumped(name, { embedMode: 0 }))));
    expect([codeOfLink('leaving.engine'), codeOfLink('staying.engine')]).toEqual([
      'TF_PLAN_INVALID',
      undefined,
    ]);
    rmSync(outside, { recursive: true });
  });

  it.each([
    ['names a plan above its folder', dumped('../plan.engine', { embedMode: 0 }), 'TF_PLAN_INVALID'],
    ['names a plan by its absolute path', dumped('/etc/passwd', { embedMode: 0 }), 'TF_PLAN_INVALID'],
    ['names a plan that is not there', dumped('none.engine', { embedMode: 0 }), 'TF_FILE_NOT_FOUND'],
    ['wraps several engines', dumped(plan, { nodes: 2 }), 'TF_PLAN_INVALID'],
    ['wraps what is no plan', dumped('no plan, but long enough to have a header'), 'TF_PLAN_INVALID'],
    ['has a part of an engine alone', dumped(plan, { mainContext: 0 }), 'TF_PLAN_INVALID'],
  ])('%s', (_, bytes, code) => {
    expect(codeOf(() => readPlanHeader(file(bytes)))).toBe(code);
  });

  it('that is damaged has no engine, or one within the file', () => {
    const whole = dumped(plan.subarray(0, 64));
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), fc.nat(whole.length), (at, value, length) => {
        const bytes = Buffer.from(whole.subarray(0, length));
        if (at < bytes.length) bytes[at] = value;
        let wrapped: ReturnType<typeof wrappedPlanIn>;
        try {
          wrapped = wrappedPlanIn(bytesSource('damaged.onnx', bytes));
        } catch (error) {
          expect(error).toMatchObject({ code: 'TF_PLAN_INVALID' });
          return;
        }
        if (wrapped?.kind === 'embedded')
          expect(wrapped.offset + wrapped.bytes).toBeLessThanOrEqual(bytes.length);
      }),
      { numRuns: runs(3000) },
    );
  });
});

describe('engines for ONNX Runtime', () => {
  const engine = () => {
    const place = mkdtempSync(join(folder, 'engine-'));
    const planPath = writeSample(place, 'engine.plan', samplePlan(1));
    const passport = readPassport(planPath);
    return { identity: passport.identity.digest, planPath, passport, signature: null, readablePath: null };
  };

  it('are a plan and a model beside it, from which the plan is found again', async () => {
    const to = join(folder, 'export');
    mkdirSync(to);
    const written = await writeExport(contextModelExporter, [engine(), engine()], to, { trust: noTrust });
    expect(new Set(written.map(({ path }) => path)).size).toBe(4);
    const [plan_, model] = written.map(({ path }) => join(to, path));
    expect(readPlanHeader(model!).path).toBe(plan_);
  });

  it('have the engine’s inputs and outputs, and are well formed for ONNX Runtime', async () => {
    const tensors = {
      inputs: [{ name: 'x', dtype: 'float16', shape: [null, 64] }],
      outputs: [
        { name: 'y', dtype: 'int64', shape: [1] },
        { name: 'z', dtype: 'float32', shape: [null], symbols: ['rows'] },
      ],
    } as unknown as Parameters<typeof contextModel>[0];
    const path = file(contextModel(tensors, 'm.engine'));
    const facts = factsOfModel(path);
    expect(facts).toMatchObject({
      inputs: [{ name: 'x', dtype: 'float16', shape: ['x_0', 64] }],
      outputs: [
        { name: 'y', dtype: 'int64', shape: [1] },
        { name: 'z', dtype: 'float32', shape: ['rows'] },
      ],
      ops: { 'com.microsoft::EPContext': 1 },
    });
    // The CPU has no implementation of the node; its schema and types were accepted before that.
    await expect(openOrtSession(path, { threads: 1 })).rejects.toMatchObject({
      code: 'TF_ONNXRUNTIME_FAILED',
      message: expect.stringMatching(/EPContext/),
    });
  });
});
