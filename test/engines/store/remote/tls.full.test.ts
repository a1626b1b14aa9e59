import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { remoteAddress } from '../../../../src/engines/store/remote/address.js';
import { RemoteStore } from '../../../../src/engines/store/remote/remote-store.js';
import { openS3 } from '../../../../src/engines/store/remote/s3-objects.js';
import { type Minio, startMinio } from '../../../support/minio.js';
import { describeWith } from '../../../support/needs.js';
import { largePlan, sampleIdentity, samplePassport } from '../../../support/sample-engine.js';

const BYTES = 70 << 20;
const OPENSSL = 'openssl';
const openssl = (...words: string[]) => spawnSync(OPENSSL, words, { encoding: 'utf8' });
const hasOpenssl = openssl('version').status === 0;

describeWith('minio', 'a bucket behind TLS', (binary) => {
  let minio: Minio;
  let folder: string;
  let front: Server;
  const plan = largePlan(3, BYTES);
  const passport = samplePassport(plan, sampleIdentity('d'.repeat(64)));

  beforeAll(async () => {
    if (!hasOpenssl) return;
    minio = await startMinio(binary);
    folder = mkdtempSync(join(tmpdir(), 'trtforge-tls-'));
    certificate(folder, 'ours');
    certificate(folder, 'other');
    front = await startFront(folder, minio.port);
    await minio.client.send(new CreateBucketCommand({ Bucket: 'team' }));
    const address = remoteAddress(`${minio.endpoint}/team`, minio.environment);
    if (address === null) throw new Error('no address');
    const store = new RemoteStore(await openS3(address), address.prefix);
    writeFileSync(join(folder, 'engine.plan'), plan);
    await store.upload(join(folder, 'engine.plan'), passport, null, { emit: () => {}, signal: undefined });
    store.close();
  });
  afterAll(async () => {
    if (!hasOpenssl) return;
    front.closeAllConnections();
    front.close();
    await minio[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  /** In a process of its own: Node reads its certificate authorities once, at the start. */
  async function download(authority: string | undefined): Promise<string> {
    const { port } = front.address() as AddressInfo;
    const target = join(folder, 'back.plan');
    rmSync(target, { force: true });
    const dist = new URL('../../../../dist/engines/store/open-stores.js', import.meta.url).href;
    const script = `
      const { openRemoteStore } = await import('${dist}');
      const remote = await openRemoteStore('https://localhost:${port}/team');
      try {
        const answer = await remote.get('${passport.identity.digest}');
        await remote.download(answer.engine, ${JSON.stringify(target)}, { emit() {} });
        console.log('whole');
      } catch (error) { console.log(error.code, error.message, error.remedy); }
      remote.close();`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      env: {
        ...process.env,
        ...minio.environment,
        ...(authority === undefined ? {} : { NODE_EXTRA_CA_CERTS: join(folder, `${authority}.crt`) }),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    return Buffer.concat(await child.stdout.toArray()).toString();
  }

  test.skipIf(!hasOpenssl)('whose authority is known gives the engine, in parts and whole', async () => {
    expect(await download('ours')).toBe('whole\n');
    expect(readFileSync(join(folder, 'back.plan')).equals(plan)).toBe(true);
  });

  test.skipIf(!hasOpenssl).each([
    ['is not known', undefined],
    ['is another', 'other'],
  ])(
    'whose authority %s is not trusted, and the remedy names NODE_EXTRA_CA_CERTS',
    async (_what, authority) => {
      expect(await download(authority)).toMatch(/^TF_REMOTE_UNREACHABLE .*TLS.*NODE_EXTRA_CA_CERTS/);
    },
  );
});

function certificate(folder: string, name: string): void {
  const made = openssl(
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
    ...['-keyout', join(folder, `${name}.key`), '-out', join(folder, `${name}.crt`)],
  );
  if (made.status !== 0) throw new Error(made.stderr);
}

/** TLS in front of the server, the Host header as it came. */
function startFront(folder: string, port: number): Promise<Server> {
  const [key, cert] = ['key', 'crt'].map((kind) => readFileSync(join(folder, `ours.${kind}`)));
  if (key === undefined || cert === undefined) throw new Error('no certificate');
  const server = createServer({ key, cert }, (incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    const onward = request({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}
