import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import {
  isEngineFile,
  planDigest,
  planHeaderOf,
  readPlanHeader,
  stripForeignHeader,
} from '../../../src/engines/plan/header.js';
import { inspectPlan, planFactsSchema } from '../../../src/engines/plan/inspect.js';
import { TrtforgeError } from '../../../src/errors.js';
import { codeOf, refusal } from '../../support/refusal.js';
import { runs } from '../../support/runs.js';
import { sampleIdentity, samplePassport } from '../../support/sample-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-plan-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

/** A plan as tensorrt-rtx 1.7.1.116 writes its first bytes: tag, serialization version, size of the whole, version of the library. */
function rtxPlan(bytes = 4096): Buffer {
  const plan = Buffer.from(Array.from({ length: bytes }, (_, index) => (index * 31) & 255));
  plan.fill(0, 0, 28);
  plan.write('vtrt', 0, 'latin1');
  plan.writeUInt32LE(2, 8);
  plan.writeBigUInt64LE(BigInt(bytes), 16);
  plan.set([1, 7, 1, 116], 24);
  return plan;
}

/** A plan of TensorRT: the same places for tag, serialization version and version. */
function trtPlan(version = [10, 6, 0, 26]): Buffer {
  const plan = rtxPlan();
  plan.write('ftrt', 0, 'latin1');
  plan.set(version, 24);
  return plan;
}

/** What Ultralytics writes: length, JSON, plan. */
function behindHeader(plan: Buffer, metadata: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(metadata));
  const length = Buffer.alloc(4);
  length.writeInt32LE(json.length);
  return Buffer.concat([length, json, plan]);
}

function file(bytes: Uint8Array): string {
  const path = join(folder, `${files++}.engine`);
  writeFileSync(path, bytes);
  return path;
}

const ultralytics = {
  description: 'Ultralytics YOLO11n model',
  author: 'Ultralytics',
  imgsz: [640, 640],
  names: { 0: 'person' },
};

describe('readPlanHeader', () => {
  it.each([
    [
      'a Git-LFS pointer',
      'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n',
      /Git-LFS pointer/,
      /git lfs pull/,
    ],
    ['an empty file', '', /is empty/, /again/],
    ['a web page', '<!DOCTYPE html><html></html>', /HTML page, not a TensorRT plan/, /\.engine/],
  ])('calls %s by its name', (_what, content, message, remedy) => {
    const error = refusal(() => readPlanHeader(file(Buffer.from(content))));
    expect(error).toMatchObject({
      code: 'TF_PLAN_INVALID',
      message: expect.stringMatching(message),
      remedy: expect.stringMatching(remedy),
    });
  });

  it.each([
    ['TensorRT-RTX', rtxPlan(), 'tensorrt-rtx', '1.7.1.116'],
    ['TensorRT 10.6', trtPlan(), 'tensorrt', '10.6.0.26'],
    ['TensorRT 8.6', trtPlan([8, 6, 1, 6]), 'tensorrt', '8.6.1.6'],
  ])('reports product and version: %s', (_name, plan, product, version) => {
    const path = file(plan);
    expect(readPlanHeader(path)).toMatchObject({
      product,
      version,
      planOffset: 0,
      planBytes: 4096,
      foreignHeader: null,
    });
    expect(isEngineFile(path)).toBe(true);
  });

  it('knows plans from before 8.6 by their tag, without a version', () => {
    const plan = trtPlan();
    plan.write('ptrt', 0, 'latin1');
    plan.writeUInt32LE(0xdc, 4);
    expect(readPlanHeader(file(plan))).toMatchObject({ product: 'tensorrt', version: null });
  });

  it('finds the plan behind an Ultralytics header and keeps what the header states', () => {
    const plan = trtPlan();
    const bytes = behindHeader(plan, ultralytics);
    const header = readPlanHeader(file(bytes));
    expect(header).toMatchObject({ version: '10.6.0.26', planBytes: 4096, fileBytes: bytes.length });
    expect(header.foreignHeader).toEqual({
      kind: 'ultralytics',
      bytes: bytes.length - 4096,
      content: ultralytics,
    });
    expect(planDigest(header)).toBe(createHash('sha256').update(plan).digest('hex'));
    expect(readPlanHeader(file(behindHeader(plan, { by: 'us' }))).foreignHeader?.kind).toBe('json');
  });

  it.each([
    ['an empty file', Buffer.alloc(0)],
    ['text', Buffer.from('this is not a plan, whatever its name says')],
    ['a tag alone', Buffer.from('ftrt')],
    ['27 bytes', trtPlan().subarray(0, 27)],
    ['an RTX plan without its last byte', rtxPlan().subarray(0, 4095)],
    ['an unknown serialization version', Buffer.from(trtPlan()).fill(7, 4, 5)],
    ['a header without a plan', behindHeader(Buffer.alloc(0), ultralytics)],
    ['a header before something else', behindHeader(Buffer.from('ONNX and more bytes'), ultralytics)],
  ])('rejects %s', (_name, bytes) => {
    expect(codeOf(() => readPlanHeader(file(bytes)))).toBe('TF_PLAN_INVALID');
  });

  it('returns or throws TF_PLAN_INVALID for any mutation, quickly', () => {
    const originals = [rtxPlan(200), trtPlan(), behindHeader(trtPlan(), ultralytics)];
    fc.assert(
      fc.property(
        fc.constantFrom(...originals),
        fc.array(fc.tuple(fc.nat(220), fc.nat(255)), { maxLength: 8 }),
        fc.option(fc.nat(300)),
        (original, flips, cut) => {
          const bytes = Buffer.from(original);
          for (const [at, value] of flips) if (at < bytes.length) bytes[at] = value;
          const code = codeOf(() =>
            planHeaderOf(bytesSource('mutated.engine', cut === null ? bytes : bytes.subarray(0, cut))),
          );
          expect(['no error', 'TF_PLAN_INVALID']).toContain(code);
        },
      ),
      { numRuns: runs(2000) },
    );
  });
});

describe('stripForeignHeader', () => {
  it('writes the plan alone, byte for byte', () => {
    const plan = trtPlan();
    const output = join(folder, 'plain.plan');
    expect(stripForeignHeader(file(behindHeader(plan, ultralytics)), output)).toEqual({
      path: output,
      bytes: 4096,
    });
    expect(readFileSync(output).equals(plan)).toBe(true);
    expect(readdirSync(folder).filter((name) => name.endsWith('.unpublished'))).toEqual([]);
  });

  it('rejects a plan without one, and its input as output', () => {
    const plain = file(trtPlan());
    const headed = file(behindHeader(trtPlan(), ultralytics));
    expect(codeOf(() => stripForeignHeader(plain, join(folder, 'never')))).toBe('TF_USAGE');
    expect(codeOf(() => stripForeignHeader(headed, headed))).toBe('TF_OUTPUT_IS_INPUT');
    expect(readPlanHeader(headed).foreignHeader?.kind).toBe('ultralytics');
  });
});

describe('inspectPlan', () => {
  const nothingAround = { passport: { path: 'none', read: () => null }, toolchains: [] };

  it('puts header, digest, passport and toolchains together', () => {
    const plan = rtxPlan();
    const sha256 = createHash('sha256').update(plan).digest('hex');
    const passport = samplePassport(plan);
    const facts = inspectPlan(file(plan), {
      passport: { path: 'p.json', read: () => passport },
      toolchains: [
        { name: 'rtx', product: 'tensorrt-rtx', version: '1.7.1.116' },
        { name: 'trt', product: 'tensorrt', version: '10.6.0.26' },
      ],
    });
    expect(planFactsSchema.parse(facts)).toMatchObject({
      sha256,
      passport: { path: 'p.json', content: passport },
      toolchains: [{ name: 'rtx', loads: 'yes' }],
      findings: [],
    });
  });

  it('doubts an engine whose GPU does not exist on its platform', () => {
    const plan = rtxPlan();
    const findings = (arch: 'x86_64' | 'aarch64') => {
      const identity = sampleIdentity();
      const target = { ...identity.target, computeCapabilities: [89, 121], arch };
      const passport = samplePassport(plan, { ...identity, target });
      const read = () => passport;
      return inspectPlan(file(plan), { ...nothingAround, passport: { path: 'p.json', read } }).findings;
    };
    expect(findings('aarch64')).toEqual([]);
    expect(findings('x86_64')).toMatchObject([{ code: 'target-platform', severity: 'warning' }]);
    expect(findings('x86_64')[0]?.message).toContain('sm_121 (Blackwell: DGX Spark, GB10) exists with Arm');
  });

  it('states when the passport is of another plan, or cannot be trusted', () => {
    const plan = file(rtxPlan());
    const other = samplePassport(Buffer.alloc(4096));
    const refuse = () => {
      throw new TrtforgeError('TF_PASSPORT_INVALID', 'p.json is not a passport: it is not JSON.');
    };
    const codes = (read: () => typeof other | null) =>
      inspectPlan(plan, { ...nothingAround, passport: { path: 'p.json', read } }).findings.map(
        ({ code }) => code,
      );
    expect(codes(() => other)).toEqual(['passport-mismatch']);
    expect(codes(refuse)).toEqual(['passport-invalid']);
    expect(codes(() => null)).toEqual(['passport-missing']);
  });

  it('ignores a passport of another plan: what loads it does not follow from its flags', () => {
    const plan = trtPlan();
    const sha256 = createHash('sha256').update(plan).digest('hex');
    const identity = sampleIdentity();
    const recipe = { ...identity.recipe, flags: ['version-compatible'] };
    const passport = samplePassport(plan, { ...identity, recipe });
    const loads = (of: string) =>
      inspectPlan(file(plan), {
        passport: { path: 'p.json', read: () => ({ ...passport, plan: { ...passport.plan, sha256: of } }) },
        toolchains: [{ name: 'next', product: 'tensorrt', version: '10.99.0.1' }],
      }).toolchains.map((each) => each.loads);
    expect(loads(sha256)).toEqual(['if-allowed']);
    expect(loads('0'.repeat(64))).toEqual(['if-version-compatible']);
  });

  it('states of an engine from another platform what its product has it', () => {
    const judged = (plan: Buffer, product: 'tensorrt' | 'tensorrt-rtx', version: string) => {
      const identity = sampleIdentity();
      const target = { ...identity.target, product, version };
      const passport = samplePassport(plan, { ...identity, target });
      const there = { name: 'arm', product, version, os: 'linux', arch: 'aarch64' } as const;
      return inspectPlan(file(plan), {
        passport: { path: 'p.json', read: () => passport },
        toolchains: [there, { ...there, name: 'own', arch: 'x86_64' }],
      }).toolchains.map(({ loads }) => loads);
    };
    expect(judged(rtxPlan(), 'tensorrt-rtx', '1.7.1.116')).toEqual(['unproven', 'yes']);
    expect(judged(trtPlan(), 'tensorrt', '10.6.0.26')).toEqual(['no', 'yes']);
  });

  it('warns of a foreign header and of bytes after the plan', () => {
    const codes = (bytes: Uint8Array) =>
      inspectPlan(file(bytes), nothingAround).findings.map(({ code }) => code);
    expect(codes(behindHeader(trtPlan(), ultralytics))).toEqual(['plan-foreign-header', 'passport-missing']);
    expect(codes(Buffer.concat([rtxPlan(), Buffer.alloc(9)]))).toEqual([
      'plan-trailing-bytes',
      'passport-missing',
    ]);
  });
});

describe('sections of a plan of TensorRT-RTX', () => {
  /** A table as tensorrt-rtx 1.7.1 writes it. */
  const withTable = (...rows: readonly (readonly [tag: string, offset: number, bytes: number])[]) => {
    const plan = rtxPlan();
    plan.writeUInt32LE(rows.length, 8);
    for (const [at, [tag, offset, bytes]] of rows.entries()) {
      const place = 64 + 24 * at;
      plan.fill(0, place, place + 24);
      plan.write(tag, place, 'latin1');
      plan.writeBigUInt64LE(BigInt(offset), place + 8);
      plan.writeBigUInt64LE(BigInt(bytes), place + 16);
    }
    return plan;
  };
  const sectionsOf = (bytes: Uint8Array) => planHeaderOf(bytesSource('p.engine', bytes)).sections;
  const whole = withTable(['NGNE', 112, 3000], ['THGW', 3112, 984]);

  it('are counted from the start of the file, also behind a foreign header', () => {
    expect(sectionsOf(whole)).toEqual({
      program: { offset: 112, bytes: 3000 },
      weights: { offset: 3112, bytes: 984 },
    });
    const behind = behindHeader(whole, ultralytics);
    expect(sectionsOf(behind)?.weights).toEqual({ offset: 3112 + behind.length - whole.length, bytes: 984 });
  });

  it.each<readonly [string, Uint8Array]>([
    ['of TensorRT', trtPlan()],
    ['of another layout', rtxPlan()],
    ['without weights', withTable(['NGNE', 112, 3000])],
    ['that end beyond the plan', withTable(['NGNE', 112, 3000], ['THGW', 3112, 985])],
    ['of a table beyond the plan', withTable(['NGNE', 112, 3000], ['THGW', 3112, 984]).subarray(0, 100)],
  ])('are not known %s', (_, bytes) => {
    const plan = Buffer.from(bytes);
    if (plan.toString('latin1', 0, 4) === 'vtrt') plan.writeBigUInt64LE(BigInt(plan.length), 16);
    expect(sectionsOf(plan)).toBeNull();
  });
});
