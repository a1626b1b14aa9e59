import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../../scripts/build-native.mjs';
import { releaseUse } from '../../../../src/engines/store/claims/in-use.js';
import { LocalStore } from '../../../../src/engines/store/local.js';
import { fakeEngine, planBytes } from '../../../fakes/tensorrt/engine.js';
import { fakes } from '../../../fakes/tensorrt/library.js';
import { sampleIdentity, samplePassport } from '../../../support/sample-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-in-use-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
beforeAll(() => buildAddon({ say: () => {} }));

/** Opens, closes and refuses sessions over a plan as it is told, a line each; answers with a line. */
const SCRIPT = `
const { openEngineSession } = await import(process.argv[1]);
const [, , toolchain, plan] = process.argv;
const sessions = [];
for await (const line of (await import('node:readline')).createInterface({ input: process.stdin })) {
  try {
    const [what, device] = line.split(' ');
    if (what === 'open') {
      sessions.push(await openEngineSession(plan, { toolchain: JSON.parse(toolchain), device: Number(device ?? 0) }));
      console.log('open');
    } else if (what === 'close') {
      await sessions.pop().close();
      console.log('closed');
    } else process.exit(0);
  } catch (error) {
    console.log(error.code ?? error.stack);
  }
}
`;

/** A store with one engine of the fake library, and a process that has sessions over it. */
async function bench() {
  const folder = mkdtempSync(join(root, 'case-'));
  const store = new LocalStore(join(folder, 'engines'), join(folder, 'memo'));
  const engine = await fakeEngine('rtx1');
  const pending = store.pending();
  const plan = planBytes('rtx1', { kind: 'affine', inner: 4 });
  writeFileSync(pending.planPath, plan);
  const document = sampleIdentity('a'.repeat(64));
  const target = { ...document.target, version: `${fakes.rtx1.version}.0`, computeCapabilities: [90] };
  const kept = await store.put(pending.planPath, samplePassport(plan, { ...document, target }));
  pending.remove();
  releaseUse(kept.planPath);
  const module = new URL('../../../../dist/engines/runtime/tensorrt/engine-session.js', import.meta.url).href;
  const words = [module, JSON.stringify(engine.bench.toolchain('rtx1')), kept.readablePath ?? kept.planPath];
  const child = spawn(process.execPath, ['--input-type=module', '-e', SCRIPT, ...words], {
    env: engine.environment(),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const gone = new Promise((resolve) => child.once('exit', resolve));
  return {
    evicted: async () => (await store.evict(0)).victims.length,
    marks: () =>
      existsSync(dirname(kept.planPath))
        ? readdirSync(dirname(kept.planPath)).filter((name) => name.startsWith('in-use')).length
        : 0,
    tell: async (line: string): Promise<string> => {
      child.stdin.write(`${line}\n`);
      return (await lines.next()).value as string;
    },
    end: (how: 'leave' | 'SIGKILL') => {
      if (how === 'SIGKILL') child.kill(how);
      else child.stdin.write('leave\n');
      return gone;
    },
  };
}

describe('an engine of the store that a session has open', () => {
  test('is never evicted, until the last session over it was closed', async () => {
    const { tell, evicted, marks, end } = await bench();
    expect([await tell('open'), await tell('open')]).toEqual(['open', 'open']);
    expect([await evicted(), marks()]).toEqual([0, 1]);
    expect([await tell('close'), await evicted(), marks()]).toEqual(['closed', 0, 1]);
    expect([await tell('close'), marks()]).toEqual(['closed', 0]);
    expect(await evicted()).toBe(1);
    await end('leave');
  });

  test('leaves no mark when it could not be opened', async () => {
    const { tell, marks, end } = await bench();
    expect([await tell('open 7'), marks()]).toEqual(['TF_GPU_UNAVAILABLE', 0]);
    await end('leave');
  });

  test('leaves no mark when its process ends without closing it', async () => {
    const { tell, marks, end } = await bench();
    expect([await tell('open'), marks()]).toEqual(['open', 1]);
    await end('leave');
    expect(marks()).toBe(0);
  });

  test('may go once its process was killed, whose mark is ignored', async () => {
    const { tell, evicted, marks, end } = await bench();
    expect([await tell('open'), await evicted()]).toEqual(['open', 0]);
    await end('SIGKILL');
    expect(marks()).toBe(1);
    expect(await evicted()).toBe(1);
  });
});
