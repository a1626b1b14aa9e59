import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const work = mkdtempSync(join(tmpdir(), 'trtforge-leaves-'));
afterAll(() => rmSync(work, { recursive: true, force: true }));

const products = readdirSync(join(root, 'src/products'), { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? [entry.name] : [],
);

/** What the type checker reports for the source without a product and its line in the registry. */
function faultsWithout(product: string): string {
  const folder = join(work, product);
  cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true });
  for (const name of ['package.json', 'tsconfig.json', 'tsconfig.build.json'])
    cpSync(join(root, name), join(folder, name));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'dir');
  rmSync(join(folder, 'src/products', product), { recursive: true });
  const registry = join(folder, 'src/registry.ts');
  const [lines, list] = readFileSync(registry, 'utf8').split('export const products');
  const kept = lines?.split('\n').filter((line) => !line.includes(`/products/${product}/`)) ?? [];
  writeFileSync(
    registry,
    `${kept.join('\n')}export const products${list?.replace(new RegExp(`,\\s+${product}\\b`), '')}`,
  );
  expect(readFileSync(registry, 'utf8')).not.toContain(product);
  try {
    const tsc = join(root, 'node_modules/.bin/tsc');
    execFileSync(tsc, ['-p', 'tsconfig.build.json', '--noEmit'], { cwd: folder, encoding: 'utf8' });
    return '';
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}

test.each(products)('the rest compiles without %s', (product) => {
  expect(faultsWithout(product)).toBe('');
});
