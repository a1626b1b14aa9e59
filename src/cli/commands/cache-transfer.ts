import { formatBytes, plural } from '../../base/text/quantity.js';
import type { CacheExport, CacheImport } from '../../engines/store/cache-result.js';
import { openLocalStore } from '../../engines/store/open-stores.js';
import { openTrust } from '../../engines/store/trust.js';
import { defineCommand } from '../command.js';
import { cacheDir, trustOptions } from '../options/store.js';

export const importCommand = defineCommand({
  arguments: [{ name: 'SOURCES', describe: 'files, folders or s3://bucket/prefix', many: true }],
  examples: [
    'trtforge cache import engines/ arcface_r100-fp16-sm75.plan',
    'trtforge cache import s3://screenalytics-models/engines',
  ],
  options: { cacheDir, ...trustOptions },
  schema: async () => (await import('../../engines/store/cache-result.js')).cacheImportSchema,
  run: async (sources, options, { environment, emit, signal }) => {
    const { importEngines } = await import('../../engines/store/import-engines.js');
    const requested = {
      requireSignature: options.requireSignature || undefined,
      trustKeys: options.trustKey,
    };
    const trust = openTrust(requested, environment);
    const store = openLocalStore(options.cacheDir, environment, trust);
    return importEngines(store, sources, { trust, environment, emit, signal });
  },
  render: (result: CacheImport, { line, colors }) => {
    for (const { from, name } of result.engines)
      line(`${colors.green('kept')}  ${name}  ${colors.dim(from)}`);
    for (const { name, droppedName, oddities } of result.foreign) {
      const other = droppedName === null ? [] : [`The same bytes as ${droppedName}, whose name is not kept.`];
      line(
        `${colors.yellow('kept without a passport')}  ${name}  ${colors.dim([...oddities, ...other].join(' '))}`,
      );
    }
    for (const { from, code, reason } of result.refused)
      line(`${colors.red('refused')}  ${from}  ${colors.dim(code)} ${reason}`);
    const foreign = new Set(result.foreign.map(({ sha256 }) => sha256)).size;
    const engines = new Set(result.engines.map(({ identity }) => identity)).size;
    line(`${plural(engines + foreign, 'engine')} now in ${result.store}`);
    if (foreign > 0)
      line(`${foreign} came without a passport: kept, listed and verified, but no build will be given them`);
  },
});

export const exportCommand = defineCommand({
  arguments: [
    { name: 'TO', describe: 'a folder or s3://bucket/prefix', writes: true },
    {
      name: 'ENGINES',
      describe: 'parts of names or starts of identities (default: all)',
      optional: true,
      many: true,
    },
  ],
  examples: ['trtforge cache export engines/ resnet50', 'trtforge cache export s3://team/engines'],
  options: { cacheDir },
  schema: async () => (await import('../../engines/store/cache-result.js')).cacheExportSchema,
  run: async ([to = '', ...names], options, { environment, emit, signal }) => {
    const { exportEngines } = await import('../../engines/exports/export-engines.js');
    const store = openLocalStore(options.cacheDir, environment, openTrust({}, environment));
    return exportEngines(store, to, names, { environment, emit, signal });
  },
  render: (result: CacheExport, { line, colors }) => {
    for (const { path, bytes } of result.engines) line(`${path}  ${colors.dim(formatBytes(bytes))}`);
    line(`${plural(result.engines.length, 'engine')}, ${formatBytes(result.bytes)}, to ${result.to}`);
  },
});
