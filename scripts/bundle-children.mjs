// Makes one file of each module in dist/ that starts a process or thread, with all that it imports: most of the start of a process is looking for modules
// (engine-child.js: 105 files, 0.3 s; as one 0.1 s). The licences of what is in them are in dist/licences.txt. Part of `npm run build`.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('../', import.meta.url));
const dist = join(root, 'dist');

/** Packages with binaries, or that are loaded only where they are used. */
const OUTSIDE = /^(?:node:|onnxruntime|sharp$|@aws-sdk|@smithy|@trtforge)/;

/** What children have in common, and the one that imports tasks by their address: those would have other classes than the bundle. */
const WHOLE = /(?:supervised|parity)-child\.js$/;
const entries = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(
  (path) => /-(?:child|thread)\.js$/.test(path) && !WHOLE.test(path),
);
const packages = new Set();
for (const entry of entries) {
  const folder = dirname(join(dist, entry));
  const bundle = await rolldown({
    input: join(dist, entry),
    platform: 'node',
    external: OUTSIDE,
    // That the addresses below shift columns of the source map; errors are thrown all the same.
    logLevel: 'silent',
    plugins: [
      {
        name: 'own-address',
        transform(code, id) {
          const [, of] = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id) ?? [];
          if (of !== undefined) packages.add(of);
          return code.replaceAll(
            'import.meta.url',
            `new URL(${JSON.stringify(relative(folder, id))}, import.meta.url).href`,
          );
        },
      },
    ],
  });
  await bundle.write({ file: join(dist, entry), format: 'esm', codeSplitting: false, sourcemap: true });
  await bundle.close();
}
const licences = [...packages].sort().map((name) => {
  const own = join(root, 'node_modules', name);
  const file = readdirSync(own).find((each) => /^licen[cs]e/i.test(each));
  const text =
    file === undefined
      ? JSON.parse(readFileSync(join(own, 'package.json'), 'utf8')).license
      : readFileSync(join(own, file), 'utf8');
  return `${name}\n\n${text.trim()}\n`;
});
writeFileSync(join(dist, 'licences.txt'), licences.join('\n---\n\n'));
