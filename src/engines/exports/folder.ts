import type { ForeignEngines } from '../store/foreign.js';
import { longerName, modelFolder } from '../store/readable-links.js';
import type { ExportedFile, Exporter } from './exporter.js';

/** Engines that came without a passport, as a store lists them. */
export type ForeignFiles = Awaited<ReturnType<ForeignEngines['list']>>;

/** `MODEL/NAME.engine` with passports and signatures, as `cache import` reads them; foreign engines in `foreign/SHA/NAME`. */
export const folderExporter = (foreign: ForeignFiles = []): Exporter => ({
  id: 'folder',
  *files(engines): Iterable<ExportedFile> {
    const taken = new Set<string>();
    for (const engine of engines) {
      const { name, identity } = engine.passport;
      const folder = modelFolder(name);
      const path = taken.has(`${folder}/${name}`)
        ? `${folder}/${longerName(name, identity.digest)}`
        : `${folder}/${name}`;
      taken.add(path);
      yield { path, engine };
    }
    for (const { path, record } of foreign)
      yield { path: `foreign/${record.sha256.slice(0, 12)}/${record.name}`, copyOf: path };
  },
});
