import { existsSync } from 'node:fs';
import { loadOnnxRuntime } from '../../addon/onnx-runtime.js';
import { serve } from '../../base/process/supervised-child.js';
import { missingLibraries, providerLibrary } from '../../engines/runtime/onnxruntime/find-library.js';
import type { OnnxRuntimeAnswer } from './onnxruntime.js';

// In a child because what it loads can fail in ways that take the process along.
serve(async (request): Promise<OnnxRuntimeAnswer> => {
  const { path } = request as { readonly path: string };
  const runtime = loadOnnxRuntime();
  const { version, buildInfo } = runtime.probe(path);
  const names = (['cuda', 'tensorrt'] as const).filter((name) => existsSync(providerLibrary(path, name)));
  const providers = names.map((name) => ({ name, missing: missingLibraries(path, name, runtime) }));
  return { version, buildInfo, providers };
});
