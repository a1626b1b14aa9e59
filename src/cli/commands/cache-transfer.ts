import { formatBytes, plural } from '../../base/text/quantity.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import type { Exporter } from '../../engines/exports/exporter.js';
import { shortIdentity } from '../../engines/identity/identity.js';
import { openLocalStore, storeOptions as stores } from '../../engines/store/open-stores.js';
import { isRemoteAddress } from '../../engines/store/remote/address.js';
import { openTrust, trustOptions } from '../../engines/store/trust.js';
import { TrtforgeError } from '../../errors.js';
import { broughtBy, defineCommand, type Product } from '../command.js';
import { text } from '../option.js';
import { step } from '../plan.js';
import { enginesArgument, openStoreThere, trustOf } from './cache-options.js';

export const importCommand = defineCommand({
  arguments: [{ name: 'SOURCES', describe: 'files, folders or s3://bucket/prefix', many: true }],
  examples: ['trtforge cache import engines/', 'trtforge cache import s3://screenalytics-models/engines'],
  options: { store: stores.store, ...trustOptions },
  schema: async () => (await import('../../engines/store/result.js')).cacheImportSchema,
  run: async (sources, options, context) => {
    const { importEngines } = await import('../../engines/store/import-engines.js');
    const trust = trustOf(options, context.environment);
    const store = openLocalStore(options.store, context.environment, trust);
    return importEngines(store, sources, { ...context, trust });
  },
  plan: async (sources, options, { environment, signal }) => {
    const { enginesIn } = await import('../../engines/store/import-engines.js');
    const found = await Promise.all(sources.map((source) => enginesIn(source, environment, signal)));
    const { place } = openLocalStore(options.store, environment);
    return {
      steps: found.flat().map(({ path, bytes }) => step('import', path, { bytes })),
      resolved: { store: place },
    };
  },
  render: (result, { line, colors }) => {
    for (const { from, name } of result.engines)
      line(`${colors.green('kept')}  ${name}  ${colors.dim(from)}`);
    for (const { from, code, reason } of result.rejected)
      line(`${colors.red('rejected')}  ${from}  ${colors.dim(code)} ${reason}`);
    const engines = new Set(result.engines.map(({ identity }) => identity)).size;
    line(`${plural(engines, 'engine')} now in ${result.store}`);
  },
});

export const exportCommand = defineCommand({
  arguments: [{ name: 'TO', describe: 'a folder or s3://bucket/prefix', writes: true }, enginesArgument],
  examples: [
    'trtforge cache export engines/ resnet50',
    'trtforge cache export engines/ resnet50 --as flat',
    'trtforge cache export s3://team/engines',
  ],
  options: {
    store: stores.store,
    as: text({
      flags: '--as <layout>',
      describe:
        'folder (default: MODEL/NAME, as cache import reads it), flat (NAME), onnxruntime (with an ONNX file around each), or a layout of a product',
    }),
  },
  schema: async () => (await import('../../engines/store/result.js')).cacheExportSchema,
  run: async ([to = '', ...names], options, context) => {
    const { environment, products } = context;
    const { exportEngines } = await import('../../engines/exports/exporter.js');
    const exporter = await exporterFor(to, options.as, products);
    const store = openStoreThere(options.store, context, openTrust({}, environment));
    return exportEngines(store, to, names, { ...context, exporter });
  },
  render: (result, { line, colors }) => {
    for (const { path, bytes } of result.engines) line(`${path}  ${colors.dim(formatBytes(bytes))}`);
    for (const { identity, code, reason } of result.rejected)
      line(`${colors.red('rejected')}  ${shortIdentity(identity)}  ${colors.dim(code)} ${reason}`);
    line(`${plural(result.engines.length, 'engine')}, ${formatBytes(result.bytes)}, to ${result.to}`);
  },
});

/** Undefined for the usual layout. Throws TF_USAGE for a layout that there is not, and one of a bucket. */
async function exporterFor(
  to: string,
  id: string | undefined,
  products: readonly Product[],
): Promise<Exporter | undefined> {
  if (id === undefined) return undefined;
  if (isRemoteAddress(to))
    throw new TrtforgeError('TF_USAGE', '--as is a layout of a folder, and a bucket has its own.', {
      remedy: 'Remove --as, or export into a folder.',
    });
  const exporters = await broughtBy(products, 'exporters');
  const exporter = exporters.find((each) => each.id === id);
  if (exporter !== undefined) return exporter;
  const ids = exporters.map((each) => each.id);
  throw new TrtforgeError('TF_USAGE', `"${id}" is not a layout.${didYouMean(id, ids)}`, {
    remedy: `Pass one of ${ids.join(', ')}.`,
  });
}
