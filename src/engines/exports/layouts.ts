import { longerName, modelFolder } from '../store/readable-links.js';
import type { StoredEngine } from '../store/store.js';
import type { ExportedFile, Exporter } from './exporter.js';

/** `MODEL/NAME.engine` with passports and signatures, as `cache import` reads them; foreign engines in `foreign/SHA/NAME`. */
export const folderExporter: Exporter = {
  id: 'folder',
  *files(engines, foreign) {
    yield* named(engines, (name) => `${modelFolder(name)}/`);
    for (const { path, record } of foreign)
      yield { path: `foreign/${record.sha256.slice(0, 12)}/${record.name}`, copyOf: path };
  },
};

/** `NAME.engine` side by side, with passports and signatures: the engines of a run root. */
export const flatExporter: Exporter = { id: 'flat', files: (engines) => named(engines, () => '') };

function* named(
  engines: readonly StoredEngine[],
  folderOf: (name: string) => string,
): Generator<ExportedFile> {
  const taken = new Set<string>();
  for (const engine of engines) {
    const { name, identity } = engine.passport;
    const unique = taken.has(name) ? longerName(name, identity.digest) : name;
    taken.add(name);
    yield { path: `${folderOf(name)}${unique}`, engine };
  }
}
