import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { CreateBucketCommand, GetObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { LocalStore } from '../../../src/engines/store/local.js';
import { makeKeys } from '../../../src/engines/store/sign-engines.js';
import { type Minio, startMinio } from '../../support/minio.js';
import { describeWith, found } from '../../support/needs.js';
import { sampleIdentity, samplePassport, samplePlan, writeSampleModel } from '../../support/sample-engine.js';

const main = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'trtforge-cache-secrets-'));
// The private key lies apart: all below the first folder is looked through.
const keys = mkdtempSync(join(tmpdir(), 'trtforge-keys-'));
afterAll(() => {
  for (const folder of [root, keys]) rmSync(folder, { recursive: true, force: true });
});

/** What `ps` shows of every process of this machine; those that end meanwhile show nothing. */
function commandLines(): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      } catch {
        return '';
      }
    });
}

describeWith('minio', 'keys of a remote store, and the key that signs', (binary) => {
  let minio: Minio;
  let environment: NodeJS.ProcessEnv;
  let secrets: readonly string[];
  const store = join(root, 'engines');

  beforeAll(async () => {
    minio = await startMinio(binary);
    await minio.client.send(new CreateBucketCommand({ Bucket: 'team' }));
    const { privateKey } = makeKeys(join(keys, 'team.pem'));
    secrets = [
      ...Object.values(minio.environment),
      ...readFileSync(privateKey, 'utf8')
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('-')),
    ];
    environment = {
      PATH: process.env.PATH,
      NO_COLOR: '1',
      XDG_CACHE_HOME: join(root, 'xdg'),
      TENSORRT_CACHE_DIR: store,
      ARTIFACTS_ENDPOINT: minio.endpoint,
      ARTIFACTS_BUCKET: 'team',
      TRTFORGE_SIGNING_KEY: privateKey,
      ...minio.environment,
    };
    const local = new LocalStore(store, join(root, 'memo'));
    const pending = local.pending();
    writeFileSync(pending.planPath, samplePlan());
    await local.put(pending.planPath, samplePassport(samplePlan(), sampleIdentity()));
    pending.remove();
  });
  afterAll(() => minio[Symbol.asyncDispose]());

  /** Runs trtforge; gives all that it says and all command lines of processes that are there while it runs. */
  async function watched(words: readonly string[], more: NodeJS.ProcessEnv = {}) {
    const child = spawn(process.execPath, [main, ...words], { cwd: root, env: { ...environment, ...more } });
    const seen = new Set<string>();
    const look = () => {
      for (const line of commandLines()) seen.add(line);
    };
    const timer = setInterval(look, 10);
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const [stdout, stderr, status] = await Promise.all([buffer(child.stdout), buffer(child.stderr), ended]);
    clearInterval(timer);
    return { status, said: `${stdout}\n${stderr}`, seen: [...seen] };
  }

  async function hidden(words: readonly string[], more: NodeJS.ProcessEnv = {}) {
    const { status, said, seen } = await watched(words, more);
    // That it looked at the right moment.
    expect(seen.some((line) => line.includes(words.slice(0, 2).join(' ')))).toBe(true);
    for (const secret of secrets) {
      expect(said).not.toContain(secret);
      expect(seen.filter((line) => line.includes(secret))).toEqual([]);
    }
    return { status, said, seen };
  }

  test.each([
    ['export', ['cache', 'export', 's3://team/engines']],
    ['ls', ['cache', 'ls', '--remote', 'default']],
    ['sign', ['cache', 'sign', '--remote', 'default']],
    ['verify', ['cache', 'verify', '--remote', 'default']],
    ['import', ['cache', 'import', 's3://team/engines']],
    ['gc', ['cache', 'gc', '--remote', 'default', '--max-size', '1G']],
  ])(
    'cache %s shows none: not as text, not as JSON, not among events, not in a list of processes',
    async (_name, words) => {
      for (const more of [['-v'], ['--json', '--events', '-v']]) {
        const { status, said } = await hidden([...words, ...more]);
        expect([status, said]).toEqual([0, expect.stringMatching(/team|engines/)]);
      }
    },
  );

  test.each<[string, NodeJS.ProcessEnv, string]>([
    ['that are refused', { ARTIFACTS_ACCESS_KEY: 'nobody' }, 'TF_REMOTE_DENIED'],
    [
      'for a server that does not answer',
      { ARTIFACTS_ENDPOINT: 'http://127.0.0.1:9' },
      'TF_REMOTE_UNREACHABLE',
    ],
    ['of which one half is missing', { ARTIFACTS_ACCESS_KEY: '' }, 'TF_REMOTE_ADDRESS_INVALID'],
  ])('nor does an error about keys %s', async (_what, more, code) => {
    const { said } = await hidden(['cache', 'ls', '--remote', 'default', '--json', '-v'], more);
    expect(said).toContain(code);
  });

  const toolchain = found('toolchain');
  test.skipIf(toolchain === undefined)(
    `a build in a child process shows none${toolchain === undefined ? ' (no toolchain here)' : ''}`,
    async () => {
      await buildAddon({ say: () => {} });
      await writeSampleModel(join(root, 'sample.onnx'));
      const words = [
        '--target',
        'tensorrt-rtx:sm_89',
        '--profile',
        'x:1x64/8x64/32x64',
        '--json',
        '--events',
        '-v',
      ];
      const { status, said, seen } = await hidden(['build', 'sample.onnx', ...words], {
        LD_LIBRARY_PATH: toolchain,
        TRTFORGE_TOOLCHAINS: join(root, 'none'),
      });
      expect([status, said]).toEqual([0, expect.stringContaining('"source": "built"')]);
      expect(seen.some((line) => line.includes('build-child'))).toBe(true);
    },
    180_000,
  );

  test('none is in any file that was written, nor in any object of the bucket', async () => {
    const files = readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
    const { Contents = [] } = await minio.client.send(new ListObjectsV2Command({ Bucket: 'team' }));
    const objects = await Promise.all(
      Contents.map(async ({ Key }) => {
        const { Body, Metadata } = await minio.client.send(new GetObjectCommand({ Bucket: 'team', Key }));
        return `${Key} ${JSON.stringify(Metadata)} ${(await Body?.transformToString('latin1')) ?? ''}`;
      }),
    );
    expect(files.length).toBeGreaterThan(3);
    expect(objects.length).toBeGreaterThan(3);
    for (const secret of secrets)
      expect([...files, ...objects].filter((content) => content.includes(secret))).toEqual([]);
  });
});
