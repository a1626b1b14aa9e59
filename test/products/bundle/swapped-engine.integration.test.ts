import { copyFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRecogniser } from '../../../src/products/bundle/index.js';
import { writeBundle } from '../../support/bundle.js';
import { describeWith } from '../../support/needs.js';
import { trtforge } from '../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-swapped-bundle-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const at = (name: string) => join(root, name);

describeWith('toolchain', 'a bundle of signed engines', () => {
  const environment = () => ({
    ...process.env,
    TENSORRT_CACHE_DIR: at('store'),
    TRTFORGE_SIGNING_KEY: at('k.pem'),
    TRTFORGE_TRUSTED_KEYS: at('k.pem.pub'),
    TRTFORGE_REQUIRE_SIGNATURE: '1',
  });
  let meta: string;
  /** What opening it ends with; without a GPU the engines themselves are not loaded. */
  const opened = (engines: string) =>
    openRecogniser(meta, { engines }, { environment: environment() }).then(
      async (recogniser) => {
        await recogniser.close();
        return 'opened';
      },
      (error: { readonly code: string }) => error.code,
    );

  beforeAll(async () => {
    meta = await writeBundle(root);
    await trtforge(['cache', 'keygen', '-o', at('k.pem'), '--json'], process.env);
    const words = ['--outdir', at('engines'), '--target', 'tensorrt-rtx:sm_89', '--batch', '1', '--json'];
    expect((await trtforge(['bundle', 'build', meta, ...words], environment())).exitCode).toBe(0);
  });

  test('has no engine of another component in the place of one, signed as it is', async () => {
    expect(await opened(at('engines'))).not.toBe('TF_BUNDLE_MISMATCH');
    cpSync(at('engines'), at('swapped'), { recursive: true });
    for (const part of ['', '.passport.json', '.signature.json'])
      copyFileSync(at(`engines/joint.engine${part}`), at(`swapped/predictor.engine${part}`));
    expect(await opened(at('swapped'))).toBe('TF_BUNDLE_MISMATCH');
  });
});
