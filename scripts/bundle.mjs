// Bundles what a process loads as it starts, with all that it imports: most of its start is looking for modules (engine-child.js: 105 files, 0.3 s; as
// one 0.1 s). Each module in dist/ that starts a child or thread becomes one file; the command line, dist/main.js, one file of what every verb needs, one
// of what several do, one of packages, and one a verb; the script of the page of `explore` one from its sources. The licences of what is in them are in dist/licences.txt. Part of `npm run build`.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('../', import.meta.url));
const dist = join(root, 'dist');

/** Packages with binaries, or that are loaded only where they are used. */
const OUTSIDE = /^(?:node:|onnxruntime|sharp$|@aws-sdk|@smithy|@trtforge|@audio|@opentelemetry)/;

/** What children have in common, and the one that imports tasks by their address: those would have other classes than the bundle. */
const WHOLE = /(?:supervised|parity)-child\.js$/;

const packages = new Set();

/** Bundles a module of dist/ into files of this folder. */
async function bundle(module, folder, output) {
  const made = await rolldown({
    input: join(dist, module),
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
  await made.write({ format: 'esm', ...output });
  await made.close();
}

const entries = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(
  (path) => /-(?:child|thread)\.js$/.test(path) && !WHOLE.test(path),
);
for (const entry of entries)
  await bundle(entry, dirname(join(dist, entry)), {
    file: join(dist, entry),
    codeSplitting: false,
    sourcemap: true,
  });

/** The modules that these import as they are loaded, themselves among them. */
function loadedBy(modules) {
  const all = new Set();
  const walk = (path) => {
    if (all.has(path)) return;
    all.add(path);
    const statics = /^(?:import|export)[^;]*?from '(\.[^']+)'/gm;
    for (const [, imported] of readFileSync(path, 'utf8').matchAll(statics))
      walk(join(dirname(path), imported));
  };
  for (const module of modules) walk(join(dist, module));
  return all;
}

const parts = join(dist, 'main');
const start = loadedBy(['cli/program/program.js', 'registry.js', 'version.js', 'base/files/publish.js']);
// The map is that of the module before it is bundled.
for (const path of [parts, join(dist, 'main.js.map')]) rmSync(path, { recursive: true, force: true });
await bundle('main.js', parts, {
  dir: dist,
  entryFileNames: 'main.js',
  chunkFileNames: 'main/[name].js',
  comments: false,
  // A file of many modules runs only those that are asked for.
  strictExecutionOrder: true,
  codeSplitting: {
    groups: [
      { name: 'start', test: (id) => start.has(id) || /\/node_modules\/commander\//.test(id), priority: 2 },
      { name: 'packages', test: /\/node_modules\//, minShareCount: 2, priority: 1 },
      { name: 'shared', minShareCount: 2 },
    ],
  },
});

// The script of a page, which runs in a browser: it stands inside of the page, so it has no imports and no file beside it.
const page = await rolldown({ input: join(root, 'src/products/explore/page/main.ts'), platform: 'browser' });
await page.write({ file: join(dist, 'products/explore/page-script.js'), format: 'iife', minify: true });
await page.close();

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
