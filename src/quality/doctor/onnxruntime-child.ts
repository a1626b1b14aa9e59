import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { serve } from '../../base/process/supervised-child.js';
import type { OnnxRuntimeFacts } from './doctor-facts.js';

// In a child because its native library can fail in ways that take the process along.
serve(async (): Promise<OnnxRuntimeFacts | null> => {
  const require = createRequire(import.meta.url);
  const entry = resolved(() => require.resolve('onnxruntime-node'));
  if (entry === null) return null;
  const about: unknown = JSON.parse(readFileSync(join(dirname(entry), '..', 'package.json'), 'utf8'));
  const version =
    typeof about === 'object' && about !== null && 'version' in about ? String(about.version) : 'unknown';
  const { listSupportedBackends } = await import('onnxruntime-node');
  const libraries = join(dirname(entry), '../bin/napi-v6', process.platform, process.arch);
  const isInstalled = (name: string) => existsSync(join(libraries, `libonnxruntime_providers_${name}.so`));
  return {
    version,
    providers: listSupportedBackends().map(({ name, bundled }) => ({
      name,
      bundled,
      installed: bundled || isInstalled(name),
    })),
  };
});

function resolved(find: () => string): string | null {
  try {
    return find();
  } catch {
    return null;
  }
}
