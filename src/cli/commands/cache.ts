import type { ValueOption } from '../../base/options/option.js';
import { formatBytes, plural } from '../../base/text/quantity.js';
import { shortIdentity } from '../../engines/identity/identity.js';
import { collectGarbage, listCache, verifyCache } from '../../engines/store/cache.js';
import type { LocalStore } from '../../engines/store/local.js';
import { storeOptions as stores } from '../../engines/store/open-stores.js';
import type { RemoteStore } from '../../engines/store/remote/remote-store.js';
import type { CacheClearing, CacheEntry } from '../../engines/store/result.js';
import { evictableTimings, evictedTiming } from '../../engines/store/timing-folder.js';
import { trustOptions } from '../../engines/store/trust.js';
import { type CommandContext, defineCommand } from '../command.js';
import { confirm, step, yesOption } from '../plan.js';
import { table } from '../text.js';
import { enginesArgument, placeOptions, trustOf, withPlace } from './cache-options.js';

export const ls = defineCommand({
  arguments: [enginesArgument],
  examples: ['trtforge cache ls', "trtforge cache ls 'resnet*fp16' sm_120"],
  options: placeOptions,
  schema: async () => (await import('../../engines/store/result.js')).cacheListSchema,
  run: (names, options, context) =>
    withPlace(options, context, undefined, (store) => listCache(store, names, context.signal)),
  render: (result, output) => {
    const rows = result.engines.map(entryRow);
    const titles = ['IDENTITY', 'PRECISION', 'TARGET', 'SIZE', 'BUILT (UTC)', 'SIGNED', 'NAME'];
    const [head = '', ...lines] = rows.length === 0 ? [] : table(titles, rows);
    if (head !== '') output.line(output.colors.dim(head));
    for (const line of lines) output.line(line);
    const count = plural(result.engines.length, 'engine');
    const { count: timings, bytes } = result.timingCaches;
    const caches = timings === 0 ? '' : `, ${plural(timings, 'timing cache')}, ${formatBytes(bytes)}`;
    output.line(`${count}, ${formatBytes(result.bytes)}${caches}, in ${result.store}`);
    const { problem } = result.timingCaches;
    if (problem !== null)
      output.line(
        `${output.colors.red('bad')}  timing caches  ${output.colors.dim(problem.code)} ${problem.reason}`,
      );
  },
});

export const verify = defineCommand({
  options: { ...placeOptions, ...trustOptions },
  schema: async () => (await import('../../engines/store/result.js')).cacheVerifySchema,
  run: async (_inputs, options, context) => {
    const { environment } = context;
    const trust = trustOf(options, environment);
    return withPlace(options, context, trust, (store) => verifyCache(store, { ...context, trust }));
  },
  render: (result, { line, colors }) => {
    for (const { name, problem } of result.engines) {
      if (problem === null) continue;
      line(`${colors.red('bad')}  ${name ?? 'unreadable'}  ${colors.dim(problem.code)} ${problem.reason}`);
    }
    line(`${result.verified} of ${plural(result.engines.length, 'engine')} verified, in ${result.store}`);
  },
});

export const gc = defineCommand({
  examples: [
    'trtforge cache gc --max-size 50G',
    'trtforge cache gc --remote s3://team/engines --max-size 1T',
  ],
  options: {
    ...placeOptions,
    maxBytes: {
      ...stores.maxBytes,
      required: '--max-size 50G',
    } as ValueOption<number>,
    yes: yesOption,
  },
  schema: async () => (await import('../../engines/store/result.js')).cacheGcSchema,
  run: (_inputs, options, context) => {
    const { maxBytes: limit, yes } = options;
    const { signal, ask } = context;
    return withPlace(options, context, undefined, async (store) => {
      await warnOfTimings(store, context);
      const sure = (identities: readonly string[]) =>
        confirm(`Removing ${counted(identities)} from ${store.place}`, { yes, ask });
      return collectGarbage(store, limit, { confirm: sure, signal });
    });
  },
  plan: (_inputs, options, context) =>
    withPlace(options, context, undefined, async (store) => {
      const { signal } = context;
      const { maxBytes: limit } = options;
      const { victims, bytesBefore, bytesAfter, excessBytes } = await store.evictionPlan(limit, signal);
      const names = new Map((await store.list(signal)).map(({ identity, name }) => [identity, name]));
      return {
        steps: victims.map(({ identity, bytes }) =>
          step('remove', names.get(identity) ?? identity, { bytes }),
        ),
        resolved: { store: store.place, maxBytes: limit, bytesBefore, bytesAfter, excessBytes },
      };
    }),
  render: (result, { line }) => {
    line(
      `${counted(result.removed)} removed, ${formatBytes(result.bytesBefore)} before and ${formatBytes(result.bytesAfter)} now, in ${result.store}`,
    );
    if (result.excessBytes > 0)
      line(`${formatBytes(result.excessBytes)} over ${formatBytes(result.maxBytes)}: what is left is in use`);
  },
});

export const clear = defineCommand({
  examples: ['trtforge cache clear --dry-run', 'trtforge cache clear --remote s3://team/engines --yes'],
  options: { ...placeOptions, yes: yesOption },
  schema: async () => (await import('../../engines/store/result.js')).cacheClearSchema,
  run: (_inputs, options, context): Promise<CacheClearing> =>
    withPlace(options, context, undefined, async (store) => {
      const { signal, ask } = context;
      await warnOfTimings(store, context);
      const names = (await everything(store, signal)).map(({ name }) => name);
      if (names.length > 0)
        await confirm(`Removing ${counted(names)} from ${store.place}`, { yes: options.yes, ask });
      const removed = await store.clear(signal);
      return { schema: 'trtforge.cache-clear/1', store: store.place, removed, names };
    }),
  plan: (_inputs, options, context) =>
    withPlace(options, context, undefined, async (store) => ({
      steps: (await everything(store, context.signal)).map(({ name, bytes }) =>
        step('remove', name, { bytes }),
      ),
      resolved: { store: store.place },
    })),
  render: ({ names, store }, { line }) => line(`${counted(names)} removed from ${store}`),
});

/** `2 engines and 1 timing cache` */
function counted(identities: readonly string[]): string {
  const timings = identities.filter((identity) => evictedTiming(identity) !== undefined).length;
  const engines = plural(identities.length - timings, 'engine');
  return timings === 0 ? engines : `${engines} and ${plural(timings, 'timing cache')}`;
}

/** Reports what is in the place of timing caches; the engines are independent of it. */
async function warnOfTimings(
  store: LocalStore | RemoteStore,
  { signal, emit }: CommandContext,
): Promise<void> {
  const { fault } = await evictableTimings(store.timing, signal);
  if (fault === null) return;
  const message = `${fault.message} ${fault.remedy}`;
  emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
}

/** Every engine of a store, those without a passport too, by its identity where the name cannot be read; and every timing cache. */
async function everything(store: LocalStore | RemoteStore, signal: AbortSignal) {
  const { engines } = await listCache(store, [], signal);
  const { timings } = await evictableTimings(store.timing, signal);
  return [
    ...engines.map(({ name, identity, bytes }) => ({ name: name ?? identity, bytes })),
    ...timings.map(({ identity, bytes }) => ({ name: identity, bytes })),
  ];
}

const entryRow = ({ identity, name, target, precision, bytes, builtAt, signedBy, problem }: CacheEntry) => [
  shortIdentity(identity),
  precision ?? '–',
  target ?? '–',
  bytes === null ? '–' : formatBytes(bytes),
  builtAt === null ? '–' : builtAt.slice(0, 16).replace('T', ' '),
  signedBy === null ? '–' : signedBy.slice(0, 8),
  [name ?? 'damaged', ...(problem === null ? [] : [problem.reason])].join('  '),
];
