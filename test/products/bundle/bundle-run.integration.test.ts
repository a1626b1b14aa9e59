import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
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
import { create } from '@bufbuild/protobuf';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { onDevice } from '../../../src/addon/gpus.js';
import { sha256 } from '../../../src/base/files/digest.js';
import type { PlanBuilder } from '../../../src/engines/builder/options.js';
import { verifyEngine } from '../../../src/engines/plan/verify-engine.js';
import { thisProcess } from '../../../src/engines/store/claims/claim.js';
import { TrtforgeError } from '../../../src/errors.js';
import { NodeProtoSchema, OperatorSetIdProtoSchema } from '../../../src/formats/onnx/onnx_pb.js';
import { environmentOf } from '../../../src/products/bundle/build-report.js';
import { forgeBundle } from '../../../src/products/bundle/forge-bundle.js';
import type { BundleContext, BundleRequest } from '../../../src/products/bundle/options.js';
import { bundleReportSchema } from '../../../src/products/bundle/result.js';
import { twoGpus } from '../../fakes/gpus.js';
import { fakeTrtexec } from '../../fakes/trtexec.js';
import {
  changeMeta,
  changeModel,
  recordingBuilder,
  scatterWeights,
  writeBundle,
} from '../../support/bundle.js';
import { sampleOutcome, samplePlan, sampleToolchain } from '../../support/sample-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-bundle-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder: string;
let meta: string;
let outdir: string;
beforeEach(async () => {
  folder = mkdtempSync(join(root, 'bundle-'));
  outdir = join(folder, 'engines');
  meta = await writeBundle(folder);
});

const environment = () => ({ ...process.env, XDG_CACHE_HOME: join(folder, 'cache') });
function run(
  builder: { build: PlanBuilder },
  more: Partial<BundleRequest> = {},
  context: BundleContext = {},
) {
  return forgeBundle(
    {
      meta,
      outdir,
      toolchain: sampleToolchain,
      target: 'tensorrt-rtx:sm_89',
      store: false,
      smoke: 'never',
      check: false,
      ...more,
    },
    { build: builder.build, environment: environment(), ...context },
  );
}
const statuses = (report: Awaited<ReturnType<typeof forgeBundle>>) =>
  Object.fromEntries(report.components.map(({ component, status }) => [component, status]));
const written = () => JSON.parse(readFileSync(join(outdir, 'build_report.json'), 'utf8'));

describe('a bundle', () => {
  test('holds each new engine against the issues of its version that no line shows, and none that lay there', async () => {
    changeModel(join(folder, 'joint.onnx'), (model) => {
      const graph = model.graph!;
      const axis = (name: string, value: number) => ({
        ...graph.initializer[0]!,
        name,
        dataType: 7,
        dims: [],
        externalData: [],
        rawData: new Uint8Array(new BigInt64Array([BigInt(value)]).buffer),
      });
      graph.initializer.push(axis('first', 0), axis('second', 1));
      for (const name of ['first', 'second'])
        graph.node.push(
          create(NodeProtoSchema, {
            opType: 'CumSum',
            name: `sum ${name}`,
            input: [graph.output[0]!.name, name],
            output: [`summed ${name}`],
          }),
        );
    });
    const build: PlanBuilder = async (_, { planPath }) => {
      const plan = samplePlan(0, 600_000);
      plan.write('ftrt', 0, 'latin1');
      plan.set([10, 9, 0, 34], 24);
      writeFileSync(planPath, plan);
      return { ...sampleOutcome(plan.length), libraryVersion: '10.9.0.34' };
    };
    const toolchain = {
      ...sampleToolchain,
      product: 'tensorrt' as const,
      version: '10.9.0.34',
      cudaMajor: 12,
    };
    const wishes = { toolchain, target: 'tensorrt:sm_90' };
    const first = await run({ build }, wishes);
    const warnings = Object.fromEntries(first.components.map((one) => [one.component, one.warnings]));
    expect(warnings).toEqual({
      encoder: [],
      predictor: [],
      joint: [expect.stringMatching(/\(cumsum-merged\)$/)],
    });
    const again = await run({ build }, wishes);
    expect(statuses(again)).toEqual({ encoder: 'kept', predictor: 'kept', joint: 'kept' });
    expect(again.components.flatMap((one) => one.warnings)).toEqual([]);
  });

  test('has the fields that the build tool of a speech exporter writes, and scripts read', async () => {
    await run(recordingBuilder());
    const report = written();
    expect(report).toMatchObject({
      outdir,
      meta,
      fp16: false,
      timing_cache: null,
      started_utc: expect.any(String),
      finished_utc: expect.any(String),
      total_sec: expect.any(Number),
      env: { tensorrt_version: sampleToolchain.version, gpu: null, driver: null, cuda_version: null },
    });
    for (const name of ['encoder', 'predictor', 'joint'])
      expect(report.components.find((one: { component: string }) => one.component === name)).toMatchObject({
        onnx: join(folder, `${name}.onnx`),
        engine: join(outdir, `${name}.engine`),
        engine_bytes: 600_000,
        engine_human: '585.94 KiB',
        profile: { min: expect.any(Object), opt: expect.any(Object), max: expect.any(Object) },
        profile_index: 0,
        timings_sec: { build: expect.any(Number) },
        logs: { build: join(outdir, 'build_logs', `${name}.log`) },
        commands: { build: [] },
        env: { tensorrt_version: sampleToolchain.version, gpu: null },
        forge: { schema: 'trtforge.forge/2', build: { source: 'built' }, error: null },
      });
  });

  test('passes the builder the model that a converted one was made from', async () => {
    const builder = recordingBuilder();
    const given: string[] = [];
    const build: PlanBuilder = (request, ...rest) => {
      given.push(request.modelPath);
      return builder.build(request, ...rest);
    };
    await run({ build }, { precision: 'fp16', only: ['joint'] });
    expect(given).toEqual([join(folder, 'joint.onnx')]);
    expect(builder.models[0]).not.toBe(given[0]);
  });

  test('becomes engines with passports, logs and a report that is what was returned', async () => {
    const builder = recordingBuilder();
    const report = await run(builder);
    expect(bundleReportSchema.parse(report)).toEqual(report);
    expect(written()).toEqual(JSON.parse(JSON.stringify(report)));
    expect(report).toMatchObject({
      outcome: 'built',
      exitCode: 0,
      model_name: 'parakeet-shaped-tiny',
      fp16: false,
      failure: null,
    });
    expect(report).not.toHaveProperty('error');
    expect(report.phases.map(({ name, status }) => [name, status])).toEqual([['read', 'done']]);
    for (const { forge } of report.components)
      expect(forge?.phases.map(({ name, status }) => [name, status])).toEqual([
        ['inspect', 'done'],
        ['resolve', 'done'],
        ['convert', 'skipped'],
        ['build', 'done'],
        ['smoke run', 'skipped'],
      ]);
    expect(report.started_utc).toMatch(/^\d{8}_\d{6}$/);
    expect(statuses(report)).toEqual({ encoder: 'built', predictor: 'built', joint: 'built' });
    for (const {
      component,
      engine,
      engine_sha256,
      onnx_sha256,
      onnx,
      logs,
      profile,
      engine_human,
      forge,
    } of report.components) {
      expect(engine).toBe(join(outdir, `${component}.engine`));
      expect(verifyEngine(engine).plan.sha256).toBe(engine_sha256);
      expect(sha256(readFileSync(onnx))).toBe(onnx_sha256);
      expect(statSync(onnx).size).toBe(forge?.model?.fileBytes);
      expect(readFileSync(logs.build!, 'utf8')).toMatch(
        /^\[\d\d\/\d\d\/\d{4}-\d\d:\d\d:\d\d\] \[I\] Building /,
      );
      expect(Object.keys(profile.opt).length).toBeGreaterThan(1);
      expect(engine_human).toBe('585.94 KiB');
    }
    expect(readdirSync(outdir).sort()).toEqual(
      [
        'build_logs',
        'build_report.json',
        'report.html',
        'report.md',
        ...['encoder', 'joint', 'predictor'].flatMap((name) => [
          `${name}.engine`,
          `${name}.engine.passport.json`,
        ]),
      ].sort(),
    );
  });

  test('is not built again while nothing changed, and only where something did', async () => {
    const builder = recordingBuilder();
    await run(builder);
    expect(statuses(await run(builder))).toEqual({ encoder: 'kept', predictor: 'kept', joint: 'kept' });
    expect(builder.models).toHaveLength(3);
    const profilesFile = join(folder, 'wider.yaml');
    writeFileSync(
      profilesFile,
      'components: { encoder: , predictor: , joint: { symbols: { time: 16/64/512 } } }',
    );
    const wider = await run(builder, { profilesFile });
    expect(statuses(wider)).toEqual({ encoder: 'kept', predictor: 'kept', joint: 'built' });
    writeFileSync(join(outdir, 'encoder.engine'), 'cut short');
    expect(statuses(await run(builder, { profilesFile })).encoder).toBe('built');
    expect(statuses(await run(builder, { forceRebuild: true }))).toEqual({
      encoder: 'built',
      predictor: 'built',
      joint: 'built',
    });
  });

  test('is not taken from the folder without a signature where one is required', async () => {
    const builder = recordingBuilder();
    await run(builder);
    const [trustKey, signKey] = [join(folder, 'trusted.pem'), join(folder, 'signing.pem')];
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    writeFileSync(trustKey, publicKey.export({ type: 'spki', format: 'pem' }));
    writeFileSync(signKey, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const required = { requireSignature: true, trustKeys: [trustKey] };
    const unsigned = await run(builder, required);
    expect(unsigned.failure?.code).toBe('TF_STORE_UNWRITABLE');
    const report = await run(builder, { ...required, signKey });
    expect(statuses(report)).toEqual({ encoder: 'built', predictor: 'built', joint: 'built' });
  });

  test('is built in part, and the report keeps what an earlier one has of the rest', async () => {
    const builder = recordingBuilder();
    const whole = await run(builder);
    const part = await run(builder, { only: ['joint'], forceRebuild: true });
    expect(statuses(part)).toEqual({ encoder: 'earlier', predictor: 'earlier', joint: 'built' });
    expect(part.components[0]).toEqual({ ...whole.components[0], status: 'earlier' });
    expect(builder.models).toHaveLength(4);
    await expect(run(builder, { only: ['join'] })).rejects.toMatchObject({
      code: 'TF_USAGE',
      remedy: expect.stringContaining('encoder, predictor, joint'),
    });
  });

  test('needs only the component that is asked for', async () => {
    rmSync(join(folder, 'encoder.onnx'));
    const report = await run(recordingBuilder(), { only: ['joint'] });
    expect(statuses(report)).toEqual({ joint: 'built' });
  });

  test('gives a builder the models where they are, and staged ones only on request', async () => {
    const inPlace = recordingBuilder();
    await run(inPlace);
    expect(inPlace.models.toSorted()).toEqual(
      ['encoder', 'joint', 'predictor'].map((name) => join(folder, `${name}.onnx`)),
    );
    scatterWeights(join(folder, 'encoder.onnx'), 'blobs');
    const staging = recordingBuilder();
    const report = await run(staging, { stage: true, keepTemp: true, forceRebuild: true });
    expect(staging.models).toContain(join(report.staging_dir!, 'encoder', 'encoder.onnx'));
    expect(existsSync(join(report.staging_dir!, 'encoder', 'blobs', 'Constant_2337_attr__value'))).toBe(true);
    expect(report.components[0]?.staging).toEqual({ method: 'hard link', files: expect.any(Number) });
    expect(report.components[0]?.external_data).toMatchObject({
      files: report.components[0]!.staging!.files - 1,
    });
    const gone = await run(recordingBuilder(), { stage: true, forceRebuild: true });
    expect([
      gone.staging_dir,
      readdirSync(outdir).filter((name) => /staging|^\.trtforge/.test(name)),
    ]).toEqual([null, [report.staging_dir!.split('/').at(-1)]]);
  });

  test('is built by the GPU that was chosen, which is the only one a builder sees', async () => {
    const seen: (string | undefined)[] = [];
    const { build } = recordingBuilder();
    const watched: PlanBuilder = (request, files, context) => {
      seen.push(context.environment?.CUDA_VISIBLE_DEVICES);
      return build(request, files, context);
    };
    const visible = { environment: { ...environment(), CUDA_VISIBLE_DEVICES: '6,7' } };
    const report = await run({ build: watched }, { device: 0 }, visible);
    expect([report.device, seen]).toEqual([0, ['6', '6', '6']]);
    await run({ build: watched }, { forceRebuild: true }, visible);
    expect(seen.slice(3)).toEqual(['6,7', '6,7', '6,7']);
  });

  test('of other components is described by a profiles file', async () => {
    const profilesFile = join(folder, 'profiles.yaml');
    writeFileSync(
      profilesFile,
      'components: { vocoder: { onnx: joint.onnx, symbols: { time: 2/4/8, token_len: 1/1/2 } } }',
    );
    const report = await run(recordingBuilder(), { profilesFile });
    expect(report.components).toMatchObject([
      {
        component: 'vocoder',
        profile: { max: { encoder_output: [1, 32, 8], predictor_output: [1, 16, 2] } },
      },
    ]);
    expect(existsSync(join(outdir, 'vocoder.engine'))).toBe(true);
  });

  test('is built side by side for tensorrt-rtx, as far as the memory budget lets it', async () => {
    let running = 0;
    const atOnce = async (budget: number, foreseen: number) => {
      let most = 0;
      let met = () => {};
      const meeting = new Promise<void>((resolve) => {
        met = resolve;
      });
      const build: PlanBuilder = async (_, { planPath }) => {
        most = Math.max(most, ++running);
        if (running === foreseen) met();
        // The sizes of the others may still be running; one more than foreseen has time to come.
        await meeting;
        await new Promise((resolve) => setTimeout(resolve, 50));
        running--;
        const plan = samplePlan(0, 600_000);
        writeFileSync(planPath, plan);
        return sampleOutcome(plan.length);
      };
      await run({ build }, { memoryBudget: budget, forceRebuild: true, toolchain: sampleToolchain });
      return most;
    };
    expect(await atOnce(64 * 2 ** 30, 3)).toBe(3);
    expect(await atOnce(1, 1)).toBe(1);
  });
});

describe('a bundle for TensorRT', () => {
  const toolchain = () => ({
    ...sampleToolchain,
    name: 'tensorrt-10.6.0.26',
    product: 'tensorrt' as const,
    version: '10.6.0.26',
    trtexec: fakeTrtexec(folder, { version: '10.6' }),
    cudaMajor: 12,
  });

  test('is built by trtexec in its own words: commands, raw logs and a timing cache in the folder', async () => {
    const report = await forgeBundle(
      {
        meta,
        outdir,
        toolchain: toolchain(),
        target: 'tensorrt:sm_90',
        store: false,
        smoke: 'never',
        builder: 'trtexec',
      },
      { environment: environment() },
    );
    expect(report).toMatchObject({
      outcome: 'built',
      builder: 'trtexec',
      timing_cache: join(outdir, 'timing.cache'),
    });
    expect(report.trtexec.path).toContain('trtexec-10.6');
    for (const { component, commands, logs, env } of report.components) {
      expect(commands.build).toEqual(expect.arrayContaining([`--onnx=${join(folder, `${component}.onnx`)}`]));
      expect(readFileSync(logs.build!, 'utf8')).toContain('&&&& PASSED');
      expect(env).toMatchObject({ tensorrt_version: '10.6.0.26', product: 'tensorrt' });
    }
    expect(readdirSync(join(outdir, 'build_logs')).sort()).toEqual([
      'encoder.log',
      'joint.log',
      'predictor.log',
    ]);
    expect(existsSync(join(outdir, 'timing.cache'))).toBe(true);
  });

  test('is built one component after another: builds side by side would time tactics wrongly', async () => {
    let running = 0;
    let most = 0;
    const build: PlanBuilder = async (_, { planPath }) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 20));
      running--;
      const plan = samplePlan(0, 600_000);
      plan.write('ftrt', 0, 'latin1');
      plan.set([10, 6, 0, 26], 24);
      writeFileSync(planPath, plan);
      return { ...sampleOutcome(plan.length), libraryVersion: '10.6.0.26' };
    };
    const wishes = { toolchain: toolchain(), target: 'tensorrt:sm_90', memoryBudget: 2 ** 40 };
    expect(statuses(await run({ build }, wishes))).toEqual({
      encoder: 'built',
      predictor: 'built',
      joint: 'built',
    });
    expect(most).toBe(1);
  });
});

describe('a bundle that cannot be built', () => {
  const failed = async (report: ReturnType<typeof run>) => {
    const result = await report;
    expect(bundleReportSchema.parse(result)).toEqual(result);
    expect(result.outcome).toBe('error');
    if (result.report === null) expect(existsSync(outdir)).toBe(false);
    else
      expect(written()).toMatchObject({
        error: `${result.failure!.code}: ${result.failure!.message}`,
        report: result.report,
      });
    return result;
  };

  test('for want of a component names it, and where it was looked for', async () => {
    rmSync(join(folder, 'predictor.onnx'));
    const { failure, exitCode, report } = await failed(run(recordingBuilder()));
    expect([failure?.code, exitCode, report]).toEqual(['TF_BUNDLE_COMPONENT_MISSING', 2, null]);
    expect(failure?.message).toBe(
      `The bundle of ${meta} lacks predictor (${join(folder, 'predictor.onnx')}).`,
    );
  });

  test('by a GPU that is not there reports it, and builds nothing', async () => {
    const builder = recordingBuilder();
    const { failure, exitCode, device } = await failed(run(builder, { device: 99 }));
    expect([failure?.code, exitCode, device]).toEqual(['TF_GPU_UNAVAILABLE', 3, 99]);
    expect(builder.models).toEqual([]);
  });

  test('by what is no GPU at all is rejected before it begins', async () => {
    await expect(run(recordingBuilder(), { device: -1 })).rejects.toMatchObject({ code: 'TF_USAGE' });
    expect(existsSync(join(outdir, 'build_report.json'))).toBe(false);
  });

  test('because the meta file contradicts the models reports every mismatch, and builds nothing', async () => {
    changeMeta(meta, { features: { n_mels: 80 }, joint_vocab_size: 99 });
    const builder = recordingBuilder();
    const { failure, mismatches, phases } = await failed(run(builder));
    expect(failure?.code).toBe('TF_BUNDLE_MISMATCH');
    expect(mismatches.map(({ component, tensor }) => [component, tensor])).toEqual([
      ['encoder', 'audio_signal'],
      ['joint', 'joint_output'],
      ['joint', 'joint_output'],
    ]);
    expect([failure?.step, phases]).toMatchObject(['read', [{ name: 'read', status: 'failed' }]]);
    expect(failure?.message).toMatch(/80 mel bins[\s\S]*38 logits; the meta file states 99/);
    expect(builder.models).toEqual([]);
  });

  test('is built all the same when the meta file is all null', async () => {
    writeFileSync(meta, '{"model_name":null,"labels":null,"blank_id":null,"features":null}');
    expect(await run(recordingBuilder())).toMatchObject({
      outcome: 'built',
      model_name: null,
      warnings: [
        expect.stringMatching(/mel bins/),
        expect.stringMatching(/logits/),
        expect.stringContaining('blank_id, tokenizer_vocab_size, duration_values'),
      ],
    });
  });

  test('for want of an external file names it', async () => {
    scatterWeights(join(folder, 'encoder.onnx'), 'blobs');
    rmSync(join(folder, 'blobs', 'Constant_2337_attr__value'));
    const { failure } = await failed(run(recordingBuilder()));
    expect([failure?.code, failure?.message]).toEqual([
      'TF_ONNX_EXTERNAL_MISSING',
      expect.stringContaining('blobs/Constant_2337_attr__value'),
    ]);
  });

  test('because the disk fills up midway keeps earlier engines and reports what was done', async () => {
    await run(recordingBuilder());
    const before = readFileSync(join(outdir, 'predictor.engine'));
    const full = recordingBuilder((model) =>
      model.includes('predictor')
        ? new TrtforgeError('TF_WRITE_FAILED', 'predictor.plan could not be written: the disk is full.')
        : {},
    );
    const report = await failed(run(full, { forceRebuild: true, memoryBudget: 1 }));
    expect(statuses(report)).toEqual({ encoder: 'built', predictor: 'failed', joint: 'not-reached' });
    expect(report).toMatchObject({
      exitCode: 3,
      failure: { component: 'predictor', code: 'TF_WRITE_FAILED' },
    });
    expect(readFileSync(join(outdir, 'predictor.engine')).equals(before)).toBe(true);
    expect(verifyEngine(join(outdir, 'encoder.engine')).plan.bytes).toBe(600_000);
    expect(verifyEngine(join(outdir, 'joint.engine')).plan.bytes).toBe(600_000);
  });

  test('because an engine is suspiciously small keeps none of it', async () => {
    changeModel(join(folder, 'joint.onnx'), ({ graph }) => {
      const weight = graph!.initializer.find(({ name }) => name.includes('joint_net.weight'))!;
      graph!.initializer.push({
        ...weight,
        name: 'unused',
        dims: [1024n, 1024n],
        rawData: new Uint8Array(4 << 20),
      });
    });
    const report = await failed(run(recordingBuilder(), { memoryBudget: 1 }));
    expect(report.failure).toMatchObject({ component: 'joint', code: 'TF_ENGINE_TOO_SMALL' });
    expect(report.failure?.message).toMatch(/600000 bytes.*build_logs\/joint\.log/);
    expect(existsSync(join(outdir, 'joint.engine'))).toBe(false);
  });

  test('only afterwards, by the check, reports that its engines are there and which step failed, and keeps them', async () => {
    // An operator that TensorRT may have as a plug-in and ONNX Runtime does not know.
    changeModel(join(folder, 'predictor.onnx'), (model) => {
      model.opsetImport.push(create(OperatorSetIdProtoSchema, { domain: 'acme', version: 1n }));
      const node = {
        opType: 'Frobnicate',
        domain: 'acme',
        name: 'f',
        input: [model.graph!.output[0]!.name],
        output: ['aside'],
      };
      model.graph!.node.push(create(NodeProtoSchema, node));
    });
    const wishes = { precision: 'fp16', check: { seed: 0, samples: 1 } } as const;
    const report = await failed(run(recordingBuilder(), wishes));
    expect(statuses(report)).toEqual({ encoder: 'built', predictor: 'built', joint: 'built' });
    expect(report.failure).toMatchObject({
      component: null,
      step: 'chained check',
      code: 'TF_ONNXRUNTIME_FAILED',
      remedy: expect.not.stringContaining('inspect'),
    });
    for (const { engine, engine_bytes } of report.components)
      expect(verifyEngine(engine).plan.bytes).toBe(engine_bytes);
    const { check: _, ...unchecked } = wishes;
    expect(statuses(await run(recordingBuilder(), unchecked))).toEqual({
      encoder: 'kept',
      predictor: 'kept',
      joint: 'kept',
    });
  });

  test('because it was killed leaves nothing that the next run does not clear away', async () => {
    const dead = join(outdir, '.trtforge-00000000-0000-4000-8000-000000000000.unpublished');
    mkdirSync(dead, { recursive: true });
    const { pid } = spawnSync(process.execPath, ['-e', '']);
    const owner = { ...thisProcess(), pid, startTicks: '1' };
    const claim = JSON.stringify({ token: '00000000-0000-4000-8000-000000000000', kind: 'pending', owner });
    writeFileSync(join(dead, 'owner.json'), claim);
    await run(recordingBuilder());
    expect(existsSync(dead)).toBe(false);
  });

  test('when it is cancelled leaves a report and no half-written file', async () => {
    const cancel = new AbortController();
    const builder = recordingBuilder(() => {
      cancel.abort();
      return new TrtforgeError('TF_CANCELLED', 'Cancelled while building.');
    });
    const report = await failed(run(builder, { memoryBudget: 1 }, { signal: cancel.signal }));
    expect(report.exitCode).toBe(4);
    expect(readdirSync(outdir).sort()).toEqual([
      'build_logs',
      'build_report.json',
      'report.html',
      'report.md',
    ]);
  });
});

test('the report of a bundle names the GPU that was chosen', () => {
  expect(environmentOf(onDevice(twoGpus, 1), undefined)).toMatchObject({
    gpu: 'NVIDIA H200',
    compute_capability: '9.0',
    driver: '570.86',
  });
});
