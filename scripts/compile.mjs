// Compiles TypeScript to the JavaScript that children run: src to dist/, examples and benchmarks to build/. What already stands for these
// sources stays. Types are not checked here, `npm run types` does that.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from './phases.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));

const PROJECTS = {
  dist: { config: 'tsconfig.build.json', sources: ['src'], outputs: ['dist'] },
  examples: {
    config: 'tsconfig.examples.json',
    sources: ['examples', 'bench'],
    outputs: ['build/examples', 'build/bench'],
  },
};

const filesIn = (folder) =>
  existsSync(join(root, folder))
    ? readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .map((path) => join(folder, path))
        .filter((path) => statSync(join(root, path)).isFile())
        .sort()
    : [];

/** One digest of the sources, the compiler and its settings, and of which files are the output, so that no other compilation passes for this one. */
function stampOf({ config, sources, outputs }) {
  const digest = createHash('sha256');
  const settings = ['package-lock.json', 'tsconfig.json', config, 'scripts/bundle.mjs'];
  for (const path of [...settings, ...sources.flatMap(filesIn).filter((path) => path.endsWith('.ts'))])
    digest
      .update(path)
      .update('\0')
      .update(readFileSync(join(root, path)))
      .update('\0');
  for (const path of outputs.flatMap(filesIn)) {
    const { size, mtimeMs } = statSync(join(root, path));
    digest.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return digest.digest('hex');
}

/**
 * Compiles a project unless its output is up to date. Returns whether it compiled. Throws SetupError.
 * @param {keyof typeof PROJECTS} name
 */
export function compile(name) {
  const project = PROJECTS[name];
  const stamp = join(root, 'build', `${name}.stamp`);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === stampOf(project)) return false;
  // A file that moved or went would keep an old import alive.
  for (const folder of project.outputs) rmSync(join(root, folder), { recursive: true, force: true });
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  runProgram(process.execPath, [tsc, '-p', project.config, '--noCheck'], { cwd: root });
  if (name === 'dist') runProgram(process.execPath, ['scripts/bundle.mjs'], { cwd: root });
  mkdirSync(join(root, 'build'), { recursive: true });
  writeFileSync(stamp, stampOf(project));
  return true;
}
