// `npm run pack:native [-- FOLDER]`: compiles and links the prebuilt addon, puts it into the platform package npm/linux-x64, and packs both packages
// into FOLDER (build/packages). An empty project installs the two and needs no compiler.
import { copyFileSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { addonFile, buildAddon, sourcesDigest } from './build-native.mjs';
import { compile } from './compile.mjs';
import { runProgram, runScript, SetupError } from './phases.mjs';
import { root } from './setup.mjs';

runScript(async () => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new SetupError('The prebuilt addon is made on x86-64 Linux.');
  compile('dist');
  // The objects of the addon that all tests run; a prebuilt one leaves none.
  await buildAddon({ prebuilt: null, say: (line) => process.stderr.write(`${line}\n`) });
  const platformPackage = join(root, 'npm', 'linux-x64');
  const { linkPortable } = await import('./portable-addon.mjs');
  linkPortable(`${addonFile}.objects`, join(platformPackage, 'trtforge.node'));
  writeFileSync(join(platformPackage, 'sources.sha256'), `${sourcesDigest()}\n`);
  copyFileSync(join(root, 'LICENSE'), join(platformPackage, 'LICENSE'));

  const folder = resolve(process.argv[2] ?? join(root, 'build', 'packages'));
  mkdirSync(folder, { recursive: true });
  for (const cwd of [platformPackage, root]) {
    const packed = runProgram('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], {
      cwd,
    });
    const file = join(folder, packed.trim());
    process.stdout.write(`${file} (${(statSync(file).size / 1e6).toFixed(1)} MB)\n`);
  }
});
