import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CreateBucketCommand } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { planSchema } from '../../../src/cli/printed-schemas.js';
import { releaseUse } from '../../../src/engines/store/claims/in-use.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import { type Minio, startMinio } from '../../support/minio.js';
import { describeWith } from '../../support/needs.js';
import { sampleIdentity, samplePassport, samplePlan } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-confirm-'));
const main = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = root;
let environment: NodeJS.ProcessEnv = {};
const local = () => new LocalStore(join(folder, 'engines'), join(folder, 'memo'));
const count = async () => (await local().list()).length;

beforeEach(async () => {
  folder = mkdtempSync(join(root, 'case-'));
  environment = {
    PATH: process.env.PATH,
    NO_COLOR: '1',
    XDG_CACHE_HOME: join(folder, 'xdg'),
    TENSORRT_CACHE_DIR: join(folder, 'engines'),
  };
  for (const letter of ['a', 'b']) {
    const plan = samplePlan(letter.charCodeAt(0));
    const pending = local().pending();
    writeFileSync(pending.planPath, plan);
    const passport = samplePassport(plan, sampleIdentity(letter.repeat(64)));
    releaseUse((await local().put(pending.planPath, passport)).planPath);
    pending.remove();
  }
});

/** Runs `trtforge cache …` in this process; whoever sits at the terminal gives the answer, without one nobody does. */
async function cache(words: readonly string[], answer?: string) {
  const questions: string[] = [];
  const ask = async (question: string) => {
    questions.push(question);
    return answer ?? '';
  };
  const terminal = answer === undefined ? {} : { ask };
  const { exitCode, json } = await trtforge(['cache', ...words, '--json'], environment, terminal);
  const said = json();
  return { exitCode, said, error: said.error, asked: questions.length };
}

describe('trtforge cache clear', () => {
  test('without a terminal needs --yes, and states it', async () => {
    const { exitCode, error, asked } = await cache(['clear']);
    expect([exitCode, error?.code, asked]).toEqual([2, 'TF_USAGE', 0]);
    expect(error?.remedy).toContain('--yes');
    expect(await count()).toBe(2);
    expect(await cache(['clear', '--yes'])).toMatchObject({
      exitCode: 0,
      said: { schema: 'trtforge.cache-clear/1', removed: 2 },
    });
    expect(await count()).toBe(0);
    expect(await cache(['clear'])).toMatchObject({ exitCode: 0, said: { removed: 0 } });
  });

  test('lists with --dry-run what would go, and asks for no confirmation', async () => {
    const { said, asked } = await cache(['clear', '--dry-run'], 'y');
    const { steps } = planSchema.parse(said);
    expect(steps.map(({ does, what }) => [does, what]).sort()).toEqual([
      ['remove', 'sample_aaaaaaaa_as-is_sm_89_1.7.1.116.engine'],
      ['remove', 'sample_bbbbbbbb_as-is_sm_89_1.7.1.116.engine'],
    ]);
    expect([asked, await count()]).toEqual([0, 2]);
  });

  test.each([
    ['', false],
    ['n', false],
    ['yellow', false],
    ['y', true],
    [' Yes ', true],
  ])('answered "%s" on a terminal', async (answer, goes) => {
    const { exitCode, error, asked } = await cache(['clear'], answer);
    expect([exitCode, error?.code, asked]).toEqual(goes ? [0, undefined, 1] : [4, 'TF_CANCELLED', 1]);
    expect(await count()).toBe(goes ? 0 : 2);
  });

  test.skipIf(spawnSync('script', ['--version']).status !== 0).each([
    ['y\n', 0, 0],
    ['n\n', 4, 2],
    ['\u0004', 4, 2],
  ])('asks on a real terminal: %j', async (input, status, left) => {
    const line = `'${process.execPath}' '${main}' cache clear`;
    const { status: ended } = spawnSync('script', ['-qec', `{ ${line}; }`, '/dev/null'], {
      env: environment,
      input,
      timeout: 240_000,
    });
    expect([ended, await count()]).toEqual([status, left]);
  });
});

test('trtforge cache gc on a folder does not ask, and --dry-run removes nothing', async () => {
  const { said } = await cache(['gc', '--max-size', '4K', '--dry-run']);
  expect(planSchema.parse(said)).toMatchObject({
    steps: [{ does: 'remove', bytes: 4096 }],
    resolved: { bytesAfter: 4096 },
  });
  expect(await count()).toBe(2);
  expect(await cache(['gc', '--max-size', '4K'])).toMatchObject({
    exitCode: 0,
    said: { removed: [expect.any(String)] },
  });
  expect(await count()).toBe(1);
});

describeWith('minio', 'a bucket', (binary) => {
  let minio: Minio;
  beforeAll(async () => {
    minio = await startMinio(binary);
  });
  afterAll(() => minio[Symbol.asyncDispose]());
  beforeEach(async () => {
    const bucket = `team${Math.random().toString(16).slice(2)}`;
    await minio.client.send(new CreateBucketCommand({ Bucket: bucket }));
    Object.assign(environment, minio.environment, {
      ARTIFACTS_ENDPOINT: minio.endpoint,
      ARTIFACTS_BUCKET: bucket,
    });
    expect(await cache(['export', `s3://${bucket}`])).toMatchObject({ exitCode: 0 });
  });
  const inBucket = async () =>
    ((await cache(['ls', '--remote', 'default'])).said as { engines?: readonly unknown[] }).engines?.length;
  afterEach(async () => {
    expect(await count()).toBe(2);
  });

  test.each([
    ['clear', ['clear', '--remote', 'default'], 0],
    ['gc', ['gc', '--remote', 'default', '--max-size', '4K'], 1],
  ])('is emptied by %s only when confirmed', async (_command, words, left) => {
    expect((await cache(words)).error?.code).toBe('TF_USAGE');
    expect((await cache(words, 'no')).error?.code).toBe('TF_CANCELLED');
    expect(await cache([...words, '--dry-run'])).toMatchObject({
      exitCode: 0,
      said: { schema: 'trtforge.plan/1' },
    });
    expect(await inBucket()).toBe(2);
    expect(await cache([...words, '--yes'])).toMatchObject({
      exitCode: 0,
      said: { store: expect.any(String) },
    });
    expect(await inBucket()).toBe(left);
  });
});
