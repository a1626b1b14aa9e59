import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256 } from '../../src/base/files/digest.js';
import type { BuildOutcome, ResolvedBuild } from '../../src/engines/builder/options.js';
import { type IdentityDocument, identityDigest } from '../../src/engines/identity/identity.js';
import type { Passport } from '../../src/engines/identity/passport.js';
import { defaultRecipe, type Recipe } from '../../src/engines/identity/recipe.js';
import { buildModel, GraphBuilder } from '../../src/formats/onnx/builder.js';
import { writeModel } from '../../src/formats/onnx/write.js';
import type { FoundToolchain } from '../../src/tensorrt/toolchain/find.js';
import type { Toolchain } from '../../src/tensorrt/toolchain/toolchain.js';

/** Bytes with the header that tensorrt-rtx 1.7.1.116 writes; `seed` makes others of the same size. */
export function samplePlan(seed = 0, bytes = 4096): Buffer {
  const plan = Buffer.from(Array.from({ length: bytes }, (_, index) => (index * 31 + seed) & 255));
  plan.fill(0, 0, 28);
  plan.write('vtrt', 0, 'latin1');
  plan.writeUInt32LE(2, 8);
  plan.writeBigUInt64LE(BigInt(bytes), 16);
  plan.set([1, 7, 1, 116], 24);
  return plan;
}

/** The same for plans of many megabytes, which differ in their pieces too. */
export function largePlan(seed: number, bytes: number): Buffer {
  const plan = Buffer.alloc(bytes, samplePlan(seed, 4093).subarray(28));
  plan.set(samplePlan(seed, 28));
  plan.writeBigUInt64LE(BigInt(bytes), 16);
  return plan;
}

export function sampleIdentity(model = 'a'.repeat(64)): IdentityDocument {
  return {
    schema: 'trtforge.identity/1',
    model,
    recipe: defaultRecipe,
    target: {
      product: 'tensorrt-rtx',
      version: '1.7.1.116',
      cudaMajor: null,
      computeCapabilities: [89],
      os: 'linux',
      arch: 'x86_64',
    },
  };
}

export function samplePassport(plan: Uint8Array, document = sampleIdentity()): Passport {
  return {
    schema: 'trtforge.passport/1',
    identity: { digest: identityDigest(document), document },
    name: `sample_${document.model.slice(0, 8)}_as-is_sm_89_1.7.1.116.engine`,
    model: { name: 'sample', version: null, bytes: 1000 },
    plan: { sha256: sha256(plan), bytes: plan.length, layers: 2, inputs: [], outputs: [] },
    built: {
      by: 'trtforge 0.1.0',
      libraryVersion: '1.7.1.116',
      toolchain: 'installed by trtforge',
      at: '2026-11-20T12:00:00.000Z',
      ms: 1234.5,
      conversionMs: null,
      peakMemoryBytes: 1 << 28,
      timingCache: 'none',
      os: 'linux x64',
      node: 'v20.20.0',
      gpu: null,
      driver: null,
    },
    warnings: [],
  };
}

export const sampleOutcome = (bytes: number): BuildOutcome => ({
  buildMs: 1,
  bytes,
  libraryVersion: '1.7.1.116',
  layers: 2,
  timingCache: 'none',
  peakMemoryBytes: 1,
  warnings: [],
  inputs: [],
  outputs: [],
});

/** An engine and its passport as two files of a folder. */
export function writeSample(folder: string, name = 'm.engine', plan = samplePlan()): string {
  const path = join(folder, name);
  writeFileSync(path, plan);
  writeFileSync(`${path}.passport.json`, JSON.stringify(samplePassport(plan)));
  return path;
}

/** A toolchain that the counting builder stands in for. */
export const sampleToolchain: FoundToolchain = {
  name: 'tensorrt-rtx-1.7.1.116',
  product: 'tensorrt-rtx',
  version: '1.7.1.116',
  libraries: { inference: '/nowhere/libtensorrt_rtx.so.1', parser: '/nowhere/parser.so.1', plugins: null },
  trtexec: null,
  foundBy: 'the test',
  folder: '/nowhere',
  flavour: 'full',
  alsoFoundBy: [],
  parserVersion: null,
  cudaMajor: 13,
  builderResources: [],
};

/** What differs from the sample in a build. */
export type BuildChanges = Partial<Omit<ResolvedBuild, 'toolchain'>> & {
  readonly toolchain?: Toolchain;
  readonly recipe?: Partial<Recipe>;
  readonly computeCapabilities?: readonly number[];
};

/** A build with everything decided. */
export function resolvedBuild(
  modelPath: string,
  { toolchain = sampleToolchain, recipe, computeCapabilities = [89], ...more }: BuildChanges = {},
): ResolvedBuild {
  const { product, version } = toolchain;
  const { target, ...identity } = sampleIdentity();
  return {
    modelPath,
    content: {
      digest: identity.model,
      bytes: 1000,
      weightBytes: 0,
      inputs: [],
      outputs: [],
      precisions: [],
      operators: {},
      opset: null,
    },
    model: { name: 'sample', version: null, bytes: 1000 },
    identity: {
      ...identity,
      recipe: { ...defaultRecipe, ...recipe },
      target: { ...target, product, version, computeCapabilities: [...computeCapabilities] },
    },
    toolchain: { ...sampleToolchain, ...toolchain },
    conversion: null,
    pluginPaths: [],
    extension: 'engine',
    device: undefined,
    timingCache: null,
    timingScope: null,
    builder: 'native',
    verbose: false,
    logFolder: '/nowhere/build_logs',
    forceRebuild: false,
    output: null,
    ...more,
  };
}

/** Writes y = x · w with an open batch, or a fixed one; weights in place or in a file beside it. */
export async function writeSampleModel(
  path: string,
  options: { readonly batch?: number; readonly external?: boolean; readonly scale?: number } = {},
): Promise<string> {
  const graph = new GraphBuilder('sample');
  const weights = Float32Array.from(
    { length: 64 * 32 },
    (_, index) => ((index % 17) - 8) * (options.scale ?? 0.01),
  );
  graph.input('x', 'float32', [options.batch ?? 'batch', 64]);
  graph.initializer('w', { dtype: 'float32', shape: [64, 32], bytes: new Uint8Array(weights.buffer) });
  graph.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: ['y'] });
  graph.output('y', 'float32', [options.batch ?? 'batch', 32]);
  await writeModel(buildModel(graph), path, { externalData: options.external ? 'always' : 'never' });
  return path;
}
