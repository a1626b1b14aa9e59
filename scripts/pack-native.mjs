// `npm run pack:native [-- FOLDER]`: compiles and links the prebuilt addon, puts it into the platform package npm/linux-x64 (on Arm npm/linux-arm64), and packs both
// packages into FOLDER (build/packages). An empty project installs the two and needs no compiler. With a compiler for the other processor its package is made too, in a
// folder of its own: npm installs no package for another machine.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { addonFile, buildAddon, crossAddon, crossCompiler, sourcesDigest } from './build-native.mjs';
import { compile } from './compile.mjs';
import { runProgram, runScript, SetupError } from './phases.mjs';
import { root } from './setup.mjs';

const OTHERS = { x64: 'arm64', arm64: 'x64' };
const say = (line) => process.stderr.write(`${line}\n`);

/** Links the objects beside an addon into its platform package, and returns the folder of that. */
async function platformPackage(addon, target) {
  const folder = join(root, 'npm', `linux-${target.arch}`);
  const { linkPortable } = await import('./portable-addon.mjs');
  linkPortable(`${addon}.objects`, join(folder, 'trtforge.node'), target);
  writeFileSync(join(folder, 'sources.sha256'), `${sourcesDigest()}\n`);
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  return folder;
}

function pack(cwd, into) {
  mkdirSync(into, { recursive: true });
  const packed = runProgram('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', into], {
    cwd,
  });
  const file = join(into, packed.trim());
  process.stdout.write(`${file} (${(statSync(file).size / 1e6).toFixed(1)} MB)\n`);
}

runScript(async () => {
  const { platform, arch } = process;
  const other = OTHERS[arch];
  if (platform !== 'linux' || other === undefined)
    throw new SetupError('The prebuilt addon is made on Linux, on x86-64 or Arm.');
  compile('dist');
  const folder = resolve(process.argv[2] ?? join(root, 'build', 'packages'));
  // The objects of the addon that all tests run; a prebuilt one leaves none.
  await buildAddon({ prebuilt: null, say });
  pack(await platformPackage(addonFile, { arch, compiler: process.env.CXX ?? 'g++' }), folder);
  pack(root, folder);

  const compiler = crossCompiler(other);
  if (spawnSync(compiler, ['--version']).status !== 0)
    return void say(
      `linux-${other} is left out: there is no ${compiler} (Debian: g++-${compiler.replace(/-g\+\+$/, '')})`,
    );
  await buildAddon({ output: crossAddon(other), compiler, say });
  pack(await platformPackage(crossAddon(other), { arch: other, compiler }), join(folder, `linux-${other}`));
});
