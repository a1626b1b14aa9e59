// Writes src/formats/serving/descriptors.ts from the .proto files beside it: `npm run serving-schema`.
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from './phases.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = 'src/formats/serving';
const built = join(tmpdir(), `serving-${process.pid}.binpb`);
runProgram('npx', ['buf', 'build', folder, '--exclude-source-info', '-o', built], { cwd: root });
const text = readFileSync(built).toString('base64');
writeFileSync(
  join(root, folder, 'descriptors.ts'),
  `/** FileDescriptorSet of the .proto files beside this one, in base64. Generated: \`npm run serving-schema\`. */\nexport const descriptors =\n  '${text}';\n`,
);
