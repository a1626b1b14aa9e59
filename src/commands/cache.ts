import { type CommandGroup, defineCommand } from '../cli/command.js';
import { text } from '../cli/option.js';
import { engineNameOf, formatEngineName } from '../engine/engine-name.js';
import { identityDigest } from '../engine/identity.js';
import { prepareBuild } from '../engine/prepare.js';
import { formatBytes, plural } from '../report/quantity.js';
import { openLocalStore } from '../store/build-or-load.js';
import {
  type CacheClearing,
  type CacheList,
  type CacheVerification,
  type CacheWhy,
  listCache,
  verifyCache,
} from '../store/cache-result.js';
import { explainStoreMiss } from '../store/obtain-engine.js';
import { buildOptions, buildWishes } from './build-options.js';
import { missLines } from './miss-text.js';

const cacheDir = text({
  flags: '--cache-dir <folder>',
  describe: 'the engine store (default: ~/.cache/trtforge/engines)',
  env: 'TENSORRT_CACHE_DIR',
});

const ls = defineCommand({
  name: 'ls',
  summary: 'the engines in the store, the newest first',
  options: { cacheDir },
  run: (_inputs, options, { environment }) => listCache(openLocalStore(options.cacheDir, environment)),
  render: (result: CacheList, { line, colors }) => {
    for (const { name, identity, bytes, builtAt, problem } of result.engines) {
      const facts = problem?.reason ?? `${formatBytes(bytes ?? 0)}  ${builtAt ?? ''}`;
      line(`${colors.dim(identity.slice(0, 12))}  ${name ?? colors.yellow('damaged')}  ${colors.dim(facts)}`);
    }
    line(`${plural(result.engines.length, 'engine')}, ${formatBytes(result.bytes)}, in ${result.store}`);
  },
});

const why = defineCommand({
  name: 'why',
  summary: 'whether build would find an engine, and if not, which field differs from the nearest one',
  arguments: [{ name: 'MODEL', describe: 'an ONNX model; options as for build' }],
  examples: ['trtforge cache why resnet50.onnx --precision fp16 --target tensorrt-rtx:sm_89'],
  options: { ...buildOptions, cacheDir },
  run: async ([model = ''], options, { emit, signal, environment }): Promise<CacheWhy> => {
    const store = openLocalStore(options.cacheDir, environment);
    const prepared = await prepareBuild(buildWishes(model, options), { emit, signal, environment });
    const digest = identityDigest(prepared.identity);
    const answer = await store.get(digest);
    const miss = answer.found ? [] : [await explainStoreMiss(store, prepared.identity, answer)];
    const { name, version } = prepared.model;
    return {
      schema: 'trtforge.cache-why/1',
      store: store.place,
      identity: digest,
      name: formatEngineName(engineNameOf(prepared.identity, name, version)),
      engine: answer.found ? answer.engine.planPath : null,
      why: miss.map((one) => ({ ...one, differences: [...one.differences] })),
    };
  },
  render: (result: CacheWhy, { line, colors }) => {
    line(`${colors.bold(result.name)}  ${colors.dim(result.identity.slice(0, 12))}`);
    if (result.engine !== null) line(`${colors.green('in the store')}  ${result.engine}`);
    for (const miss of result.why) for (const each of missLines(miss)) line(each);
  },
});

const verify = defineCommand({
  name: 'verify',
  summary: 'hold every engine of the store against its passport: size, header, SHA-256',
  options: { cacheDir },
  run: (_inputs, options, { environment }) => verifyCache(openLocalStore(options.cacheDir, environment)),
  render: (result: CacheVerification, { line, colors }) => {
    for (const { name, identity, problem } of result.engines) {
      if (problem === null) continue;
      line(
        `${colors.red('bad')}  ${name ?? identity.slice(0, 12)}  ${colors.dim(problem.code)} ${problem.reason}`,
      );
    }
    line(`${result.sound} of ${plural(result.engines.length, 'engine')} sound, in ${result.store}`);
  },
});

const clear = defineCommand({
  name: 'clear',
  summary: 'remove every engine from the store',
  options: { cacheDir },
  run: async (_inputs, options, { environment }): Promise<CacheClearing> => {
    const store = openLocalStore(options.cacheDir, environment);
    return { schema: 'trtforge.cache-clear/1', store: store.place, removed: await store.clear() };
  },
  render: (result: CacheClearing, { line }) =>
    line(`${plural(result.removed, 'engine')} removed from ${result.store}`),
});

export const command: CommandGroup = {
  name: 'cache',
  summary: 'what the engine store holds, and why it did not serve',
  subcommands: [ls, why, verify, clear],
};
