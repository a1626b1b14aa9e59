import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'oxc-parser';
import { describe, expect, test } from 'vitest';

const source = fileURLToPath(new URL('../src', import.meta.url));
const tables = readFileSync(join(source, 'README.md'), 'utf8');

/** The layers, lowest first: rows of the table in src/README.md. A row may hold several rooms that do not know each other. */
const LAYERS = [...tables.matchAll(/^\| (\d+) \| ([^|]+) \|/gm)].map(([, at, rooms = '']) => ({
  at: Number(at),
  rooms: [...rooms.matchAll(/`([\w.-]+)\/?`/g)].map(([, room = '']) => room),
}));
/** The rooms within a folder, lowest first: rows of the second table. `*.ts` are its own files without a name in the row. */
const ORDERS = [...tables.matchAll(/^\| `([\w/-]+)\/` \| ([^|]+) \|/gm)].map(
  ([, folder = '', rooms = '']) => ({
    folder,
    rooms: [...rooms.matchAll(/`([^`]+)`/g)].map(([, room = '']) => room),
  }),
);
const below = (folder: string, paths: readonly string[]) =>
  paths.filter((path) => path.startsWith(`${folder}/`));
/** Files that other rooms import, by room: rows of the third table. */
const DOORS = [...tables.matchAll(/^\| `([\w-]+\/[\w-]+)` \| ([^|]+) \|/gm)].map(
  ([, room = '', doors = '']) => ({
    room,
    doors: [...doors.matchAll(/`([^`]+)`/g)].map(([, door = '']) => `${room}/${door}.ts`).sort(),
  }),
);
function placeIn({ folder, rooms }: (typeof ORDERS)[number], path: string): string {
  const [room = '', ...more] = path.slice(folder.length + 1).split('/');
  return more.length > 0 || rooms.includes(room) ? room : '*.ts';
}
const layerOf = (room: string) => LAYERS.find(({ rooms }) => rooms.includes(room))?.at ?? -1;

/** Files that may be imported lazily by --version and --help; none of them may pull in zod, protobuf or ONNX Runtime. */
const LIGHT = ['main.ts', 'cli/program/program.ts', 'version.ts', 'errors.ts', 'events.ts', 'registry.ts'];

const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.ts'),
);
const roomOf = (path: string) => path.split('/')[0] ?? '';

function importsOf(path: string, pattern = /(?:from|import\()\s*'(\.[^']+)'/g): readonly string[] {
  const text = readFileSync(join(source, path), 'utf8');
  return [...text.matchAll(pattern)].map((match) => match[1] ?? '');
}

const target = (path: string, imported: string) =>
  relative(source, resolve(source, dirname(path), imported)).replace(/\.js$/, '.ts');

const imports = (path: string) => importsOf(path).map((imported) => target(path, imported));

/** Most lines of a function, from its parameters or the word before them to its end. */
const LONGEST_FUNCTION = 60;
/** Longer functions that stay, as the test reports them. */
const longFunctions: readonly string[] = [];

/** The functions of a source that are too long: where, their lines, and the line with which each begins. */
function longFunctionsIn(path: string, text: string): readonly string[] {
  const found: string[] = [];
  const measure = ({ start, end }: { readonly start: number; readonly end: number }) => {
    const count = text.slice(start, end).split('\n').length;
    const [first = ''] = text.slice(text.lastIndexOf('\n', start) + 1).split('\n');
    if (count > LONGEST_FUNCTION) found.push(`${path}: ${count} lines from "${first.trim()}"`);
  };
  new Visitor({
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure,
  }).visit(parseSync(path, text).program);
  return found;
}

/** Every way that leads from a file back to it, found by walking in depth; a file is walked once. */
function circlesIn(graph: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const walk = (path: string, way: readonly string[]): void => {
    const from = way.indexOf(path);
    if (from >= 0) circles.push([...way.slice(from), path]);
    if (from >= 0 || done.has(path)) return;
    for (const next of graph.get(path) ?? []) walk(next, [...way, path]);
    done.add(path);
  };
  for (const path of graph.keys()) walk(path, []);
  return circles;
}

describe('the layers', () => {
  test('every first-level folder and file of src stands in the table of src/README.md', () => {
    expect([...new Set(files.map(roomOf))].filter((room) => layerOf(room) < 0)).toEqual([]);
  });

  test('every file that a row of docs/architecture.md names is there, in a folder of that row', () => {
    const page = readFileSync(join(source, '../docs/architecture.md'), 'utf8');
    const rows = [...page.matchAll(/^\| .*$/gm)].map(([row]) =>
      [...row.matchAll(/`([\w./-]+)`/g)].map(([, name = '']) => name),
    );
    const named = rows.flatMap((names) =>
      names.filter((name) => name.endsWith('.ts')).map((name) => ({ names, name })),
    );
    expect(named.length).toBeGreaterThan(50);
    const isThere = ({ names, name }: (typeof named)[number]) =>
      files.includes(name) || names.some((folder) => files.includes(`${folder.replace(/\/$/, '')}/${name}`));
    expect(named.filter((each) => !isThere(each)).map(({ name }) => name)).toEqual([]);
  });

  test('a layer imports only layers below it, and rooms of one layer do not import each other', () => {
    const wrong = files.flatMap((path) =>
      imports(path)
        .filter((to) => roomOf(to) !== roomOf(path) && layerOf(roomOf(to)) >= layerOf(roomOf(path)))
        .map((to) => `${path} imports ${to}`),
    );
    expect(wrong).toEqual([]);
  });

  test('a product imports no other product', () => {
    const product = (path: string) => path.split('/')[1];
    const wrong = files
      .filter((path) => path.startsWith('products/'))
      .flatMap((path) =>
        imports(path)
          .filter((to) => to.startsWith('products/') && product(to) !== product(path))
          .map((to) => `${path} imports ${to}`),
      );
    expect(wrong).toEqual([]);
  });

  test('every layer with rooms has a row that names each of them once', () => {
    const layers = files.flatMap((path) => (path.split('/').length > 2 ? [roomOf(path)] : []));
    const ordered = ORDERS.map(({ folder }) => folder);
    expect([...new Set(layers)].filter((room) => room !== 'products' && !ordered.includes(room))).toEqual([]);
    for (const { folder, rooms } of ORDERS) {
      const found = new Set(below(folder, files).map((path) => placeIn({ folder, rooms }, path)));
      expect({ folder, rooms: [...found].sort() }).toEqual({ folder, rooms: [...rooms].sort() });
    }
  });

  test('a room of a layer imports only rooms that stand before it in its row', () => {
    const wrong = ORDERS.flatMap((order) => {
      const rank = (path: string) => order.rooms.indexOf(placeIn(order, path));
      return below(order.folder, files).flatMap((path) =>
        below(order.folder, imports(path))
          .filter((to) => rank(to) > rank(path))
          .map((to) => `${path} imports ${to}`),
      );
    });
    expect(wrong).toEqual([]);
  });

  test('of a room with a list of doors others import these and no more, and each of them', () => {
    const across = files.flatMap((path) => imports(path).map((to) => ({ path, to })));
    const opened = (room: string) => {
      const outside = across.filter(({ path }) => !path.startsWith(`${room}/`)).map(({ to }) => to);
      return [...new Set(below(room, outside))].sort();
    };
    const entered = across.flatMap(({ path, to }) => {
      const [layer, room, file] = to.split('/');
      const isRoom = file !== undefined && layer !== 'products';
      return isRoom && !path.startsWith(`${layer}/${room}/`) ? [`${layer}/${room}`] : [];
    });
    expect(DOORS.map(({ room }) => room).sort()).toEqual([...new Set(entered)].sort());
    expect(DOORS.map(({ room }) => ({ room, doors: opened(room) }))).toEqual(DOORS);
  });

  test('no file imports itself by way of others, not even a type', () => {
    expect(circlesIn(new Map(files.map((path) => [path, imports(path)])))).toEqual([]);
    const circle = new Map([
      ['a', ['b']],
      ['b', ['c', 'd']],
      ['c', ['a']],
      ['d', []],
    ]);
    expect(circlesIn(circle)).toEqual([['a', 'b', 'c', 'a']]);
  });

  test('no function has more than 60 lines, generated files apart', () => {
    const written = files.filter((path) => !path.endsWith('_pb.ts'));
    const found = written.flatMap((path) => longFunctionsIn(path, readFileSync(join(source, path), 'utf8')));
    expect(found.sort()).toEqual(longFunctions);
  });

  test.each([
    ['async function run() {', '}'],
    ['export const run = (): void => {', '};'],
    ['export const run = () => [', '];'],
    ['class Runner { run() {', '}}'],
  ])('a function of 61 lines is found: %s', (first, last) => {
    const ofLines = (count: number) => [first, ...Array<string>(count - 2).fill(''), last].join('\n');
    expect(longFunctionsIn('a.ts', `// é\n${ofLines(61)}`)).toEqual([`a.ts: 61 lines from "${first}"`]);
    expect(longFunctionsIn('a.ts', ofLines(60))).toEqual([]);
  });

  test('only the format itself is named by its id: everything else reads formats', () => {
    const named = files
      .filter((path) => !path.startsWith('formats/precision/formats/'))
      .flatMap((path) =>
        readFileSync(join(source, path), 'utf8')
          .split('\n')
          .filter((line) => !/^\s*(\*|\/[/*])/.test(line) && /(['"`])(fp16|bf16)\1/.test(line))
          .map((line) => `${path}: ${line.trim()}`),
      );
    expect(named).toEqual([]);
  });

  test('no test looks at a clock, or at memory that a busy machine holds longer: figures are for benchmarks', () => {
    const tests = fileURLToPath(new URL('.', import.meta.url));
    const clocks = /performance\.now|hrtime|cpuUsage|resourceUsage|\brss\b|(?<!new Date\()Date\.now\(\) -/;
    for (const text of ['performance.now() - begun', 'memoryUsage().rss', 'expect(Date.now() - begun)'])
      expect(text).toMatch(clocks);
    const looking = readdirSync(tests, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.test.ts') && path !== 'layering.test.ts')
      .filter((path) => clocks.test(readFileSync(join(tests, path), 'utf8')));
    expect(looking).toEqual([]);
  });

  test('what benchmarks load from dist by its path has a source', () => {
    const bench = fileURLToPath(new URL('../bench', import.meta.url));
    const written = readdirSync(bench, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => readFileSync(join(bench, path), 'utf8'))
      .join('\n');
    const joined = [...written.matchAll(/'dist', ((?:'[\w-]+', )*'[\w-]+\.js')/g)].map(([, parts = '']) =>
      parts.replaceAll("', '", '/').replaceAll("'", ''),
    );
    const loaded = [...written.matchAll(/'((?:[\w-]+\/)+[\w-]+)\.js'/g)].map(([, path]) => `${path}.js`);
    const named = [...joined, ...loaded].map((path) => path.replace(/\.js$/, '.ts'));
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((path) => !files.includes(path))).toEqual([]);
  });

  /** Files that these load as they start, and which of them import one of the packages. */
  function loadedBy(entries: readonly string[], packages: RegExp) {
    const statics = /^(?:import|export) (?!type)[^;]*?from '(\.[^']+)'/gm;
    const seen = new Set<string>();
    const walk = (path: string): void => {
      if (seen.has(path)) return;
      seen.add(path);
      for (const imported of importsOf(path, statics)) walk(target(path, imported));
    };
    for (const path of entries) walk(path);
    const heavy = [...seen].filter((path) =>
      importsOf(path, /^import (?!type)[^;]*from '([^.'][^']*)'/gm).some((name) => packages.test(name)),
    );
    return { files: seen.size, heavy };
  }

  test('starting the command line and listing a store load nothing heavy, not even by way of others', () => {
    const { files, heavy } = loadedBy(
      [...LIGHT, 'cli/commands/cache.ts'],
      /^(?:zod|@bufbuild|onnxruntime|yaml)/,
    );
    expect(files).toBeGreaterThan(20);
    expect(heavy).toEqual([]);
  });

  test('child processes that build, run and measure start without zod, which takes 0.2 s', () => {
    const children = files.filter((path) => /^(?:engines|quality)\/.*-child\.ts$/.test(path));
    expect(children.length).toBeGreaterThan(5);
    expect(loadedBy(children, /^zod/).heavy).toEqual([]);
  });

  test('only the command line and its entry files write to the console', () => {
    const loud = files.filter((path) =>
      /^(?! \*).*\bconsole\.(log|error|warn)\(/m.test(readFileSync(join(source, path), 'utf8')),
    );
    expect(loud).toEqual([]);
  });
});
