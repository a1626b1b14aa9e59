import { existsSync } from 'node:fs';
import type { NativeOnnxRuntime } from '../../../addon/onnx-runtime.js';
import { openFile } from '../../../base/files/byte-source.js';
import { readElf } from '../../../tensorrt/toolchain/elf.js';
import { providerLibrary } from './find-library.js';

/**
 * The libraries that a provider needs and the loader of this process does not find, by soname: all of them, where the loader reports the first alone. What a library
 * that is found needs in turn is not looked at; where all are found and the library that all providers share does not load, the loader's text is the only entry.
 * Throws TF_LIBRARY_INVALID for a file that is no library.
 */
export function missingLibraries(
  library: string,
  provider: 'cuda' | 'tensorrt',
  { loadError }: Pick<NativeOnnxRuntime, 'loadError'>,
): readonly string[] {
  const path = providerLibrary(library, provider);
  const shared = providerLibrary(library, 'shared');
  const absent = [path, shared].filter((each) => !existsSync(each));
  if (absent.length > 0) return absent;
  const source = openFile(path);
  try {
    const missing = readElf(source).needed.filter((name) => loadError(name) !== null);
    if (missing.length > 0) return missing;
  } finally {
    source.close();
  }
  // The provider itself is ONNX Runtime's to load: outside a session its initialisers take host functions that are not there, and end the process (seen with CUDA).
  const why = loadError(shared);
  return why === null ? [] : [why];
}
