/**
 * Child of the store's cases, over the modules of dist/ (argv[2] is the clone). `hit MODEL STORE RUNS` prints the seconds of each `buildOrLoad` of a
 * model whose digests are known; `fill STORE COUNT` writes a store of that many small engines; `upload` and `download ENDPOINT FILE RUNS` print the
 * seconds of each transfer through a bucket.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [root = '', task = '', ...words] = process.argv.slice(2);
const load = <T>(path: string): Promise<T> => import(pathToFileURL(join(root, 'dist', path)).href);
const sha256 = (text: string | Uint8Array) => createHash('sha256').update(text).digest('hex');

async function timed(runs: number, work: () => Promise<unknown>, before = () => {}): Promise<number[]> {
  const seconds: number[] = [];
  for (let run = 0; run < runs; run++) {
    before();
    const started = performance.now();
    await work();
    seconds.push((performance.now() - started) / 1000);
  }
  return seconds;
}

async function hit(model: string, store: string, runs: string): Promise<number[]> {
  const { buildOrLoad } = await load<{
    buildOrLoad(wishes: Record<string, unknown>): Promise<{ source: string }>;
  }>('index.js');
  const wishes = { model, store, target: 'tensorrt-rtx:sm_89', profiles: ['x:1x1024/8x1024/32x1024'] };
  const ask = async () => {
    const { source } = await buildOrLoad(wishes);
    if (source !== 'local') throw new Error(`The engine was ${source}.`);
  };
  await ask();
  return timed(Number(runs), ask);
}

async function fill(store: string, count: string): Promise<number[]> {
  const { identityDigest } = await load<{ identityDigest(document: unknown): string }>(
    'engines/identity/identity.js',
  );
  const { defaultRecipe } = await load<{ defaultRecipe: unknown }>('engines/identity/recipe.js');
  const plan = Buffer.alloc(256);
  plan.write('vtrt');
  plan.writeBigUInt64LE(256n, 16);
  plan.set([1, 7, 1, 116], 24);
  for (let number = 0; number < Number(count); number++) {
    const model = sha256(`model ${number}`);
    const target = {
      product: 'tensorrt-rtx',
      version: '1.7.1.116',
      cudaMajor: null,
      computeCapabilities: [89],
      os: 'linux',
      arch: 'x86_64',
    };
    const document = { schema: 'trtforge.identity/1', model, recipe: defaultRecipe, target };
    const digest = identityDigest(document);
    const path = join(store, 'by-identity', digest.slice(0, 2), digest, 'engine.plan');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, plan);
    writeFileSync(
      `${path}.passport.json`,
      JSON.stringify({
        schema: 'trtforge.passport/1',
        identity: { digest, document },
        name: `model${number}_${model.slice(0, 8)}_as-is_sm_89_1.7.1.116.engine`,
        model: { name: `model${number}`, version: null, bytes: 1 },
        plan: { sha256: sha256(plan), bytes: plan.length, layers: 1, inputs: [], outputs: [] },
        built: {
          by: 'the benchmark',
          libraryVersion: '1.7.1.116',
          toolchain: 'none',
          at: new Date(number * 1e6).toISOString(),
          ms: 1,
          conversionMs: null,
          peakMemoryBytes: null,
          timingCache: 'none',
          os: 'linux',
          node: process.version,
          gpu: null,
          driver: null,
        },
        warnings: [],
      }),
    );
  }
  return [];
}

interface Transfers {
  readonly remoteAddress: (uri: string, environment: NodeJS.ProcessEnv) => unknown;
  readonly openS3: (address: unknown) => Promise<{ head(key: string): Promise<unknown>; close(): void }>;
  readonly uploadFile: (...parameters: unknown[]) => Promise<void>;
  readonly downloadFile: (...parameters: unknown[]) => Promise<void>;
}

/** `digest` is the file's SHA-256, which a passport would give. */
async function transfer(endpoint: string, file: string, runs: string, digest: string): Promise<number[]> {
  const parts = ['address', 's3-objects', 'upload', 'download'].map((part) =>
    load<Partial<Transfers>>(`engines/store/remote/${part}.js`),
  );
  const library = Object.assign({}, ...(await Promise.all(parts))) as Transfers;
  const objects = await library.openS3(library.remoteAddress(`${endpoint}/bench/engines`, process.env));
  const options = { emit: () => {}, signal: undefined };
  const key = 'engines/large.engine';
  try {
    if (task === 'upload')
      return await timed(Number(runs), () => library.uploadFile(objects, file, key, {}, options));
    const [facts, target] = [await objects.head(key), `${file}.back`];
    const expected = { bytes: statSync(file).size, sha256: digest };
    const download = () => library.downloadFile(objects, facts, target, expected, options);
    return await timed(Number(runs), download, () => rmSync(target, { force: true }));
  } finally {
    objects.close();
  }
}

const [a = '', b = '', c = '', d = ''] = words;
const seconds =
  task === 'hit' ? await hit(a, b, c) : task === 'fill' ? await fill(a, b) : await transfer(a, b, c, d);
process.stdout.write(`${JSON.stringify(seconds)}\n`);
process.exit(0);
