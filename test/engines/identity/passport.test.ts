import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type Passport, parsePassport, readPassport } from '../../../src/engines/identity/passport.js';
import { verifyEngine } from '../../../src/engines/plan/verify-engine.js';
import { publishEngine } from '../../../src/engines/store/publish-engine.js';
import { TrtforgeError } from '../../../src/errors.js';
import { mutations } from '../../support/mutations.js';
import { refusal } from '../../support/refusal.js';
import { sampleIdentity, samplePassport, samplePlan, writeSample } from '../../support/sample-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-passport-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const folder = () => mkdtempSync(join(root, 'case-'));

describe('an engine and its passport', () => {
  test('that agree are used', () => {
    const path = writeSample(folder());
    expect(verifyEngine(path)).toEqual(samplePassport(samplePlan()));
  });

  const rewrite = (path: string, change: (passport: Passport) => void) => {
    const passport = readPassport(path);
    change(passport);
    writeFileSync(`${path}.passport.json`, JSON.stringify(passport));
  };
  const cases: readonly [string, string, (path: string) => void][] = [
    ['TF_FILE_NOT_FOUND', 'no plan', (path) => rmSync(path)],
    ['TF_PASSPORT_MISSING', 'no passport', (path) => rmSync(`${path}.passport.json`)],
    ['TF_ENGINE_SIZE_MISMATCH', 'a plan that was cut short', (path) => truncateSync(path, 1000)],
    ['TF_ENGINE_SIZE_MISMATCH', 'a plan with bytes behind it', (path) => appendFileSync(path, 'x')],
    [
      'TF_ENGINE_DIGEST_MISMATCH',
      'another plan of the same size',
      (path) => writeFileSync(path, samplePlan(1)),
    ],
    ['TF_PLAN_INVALID', 'bytes that are no plan', (path) => writeFileSync(path, Buffer.alloc(4096, 7))],
    [
      'TF_ENGINE_HEADER_MISMATCH',
      'a plan of another version',
      (path) => {
        const plan = samplePlan();
        plan[25] = 8;
        writeFileSync(path, plan);
      },
    ],
    [
      'TF_ENGINE_HEADER_MISMATCH',
      'a plan of another product',
      (path) => {
        const plan = samplePlan();
        plan.write('ftrt', 0, 'latin1');
        writeFileSync(path, plan);
      },
    ],
    [
      'TF_PASSPORT_INVALID',
      'a passport that is no JSON',
      (path) => writeFileSync(`${path}.passport.json`, '{'),
    ],
    ['TF_PASSPORT_INVALID', 'an empty passport', (path) => writeFileSync(`${path}.passport.json`, '')],
    [
      'TF_PASSPORT_INVALID',
      'a passport whose identity was edited',
      (path) => rewrite(path, (passport) => passport.identity.document.target.computeCapabilities.push(120)),
    ],
    [
      'TF_PASSPORT_INVALID',
      'a passport whose name leads elsewhere',
      (path) =>
        rewrite(path, (passport) => Object.assign(passport, { name: '../../evil_1_fp16_sm_89_1.7.engine' })),
    ],
    [
      'TF_PASSPORT_INVALID',
      'a passport larger than any',
      (path) => writeFileSync(`${path}.passport.json`, Buffer.alloc(17 << 20, 32)),
    ],
  ];
  test.each(cases)('%s: %s', (code, _what, damage) => {
    const path = writeSample(folder());
    damage(path);
    const error = refusal(() => verifyEngine(path));
    expect(error.code).toBe(code);
    expect(error.message).toContain(path);
  });

  test('a build number beyond one byte is compared as the header keeps it', () => {
    const plan = samplePlan();
    plan[27] = 300 % 256;
    const identity = sampleIdentity();
    const document = { ...identity, target: { ...identity.target, version: '1.7.1.300' } };
    const path = join(folder(), 'm.engine');
    writeFileSync(path, plan);
    writeFileSync(`${path}.passport.json`, JSON.stringify(samplePassport(plan, document)));
    expect(verifyEngine(path).identity.document.target.version).toBe('1.7.1.300');
  });

  test('a passport with fields of a later version is read', () => {
    const text = JSON.stringify({ ...samplePassport(samplePlan()), measured: { gpuMs: 1 } });
    expect(parsePassport(text, 'p')).toEqual(samplePassport(samplePlan()));
  });
});

describe('publishing an engine', () => {
  test('puts plan and passport in place and leaves nothing else', async () => {
    const where = folder();
    const pending = join(where, 'pending');
    writeFileSync(pending, samplePlan());
    const path = join(where, 'sub', 'm.engine');
    await publishEngine(pending, samplePassport(samplePlan()), path);
    expect(verifyEngine(path).plan.bytes).toBe(4096);
    expect(() => readFileSync(pending)).toThrow();
    expect(() => readFileSync(`${pending}.passport.json`)).toThrow();
  });
});

describe('bytes that are no passport', () => {
  test('are rejected with an error of ours, whatever they are', () => {
    const text = Buffer.from(JSON.stringify(samplePassport(samplePlan())));
    let refused = 0;
    for (const bytes of mutations(text, 3000)) {
      try {
        parsePassport(Buffer.from(bytes).toString(), 'mutated');
      } catch (error) {
        expect(error).toBeInstanceOf(TrtforgeError);
        expect((error as TrtforgeError).code).toBe('TF_PASSPORT_INVALID');
        expect((error as TrtforgeError).message.length).toBeLessThan(500);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(2000);
  });

  test.each([
    'null',
    '[]',
    '7',
    '"x"',
    '{}',
    '{"schema":"trtforge.passport/2"}',
    `${'['.repeat(5000)}${']'.repeat(5000)}`,
  ])('%.30s', (text) => {
    expect(refusal(() => parsePassport(text, 'p')).code).toBe('TF_PASSPORT_INVALID');
  });
});
