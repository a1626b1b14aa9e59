import { openFile } from '../../base/files/byte-source.js';
import type { Audio } from './audio.js';
import { readFlac } from './flac.js';
import { readWav } from './wav.js';

/** Reads WAV or FLAC, by its first bytes; throws what `readWav` and `readFlac` throw. */
export async function readAudio(path: string): Promise<Audio> {
  const source = openFile(path);
  const head = Buffer.alloc(4);
  try {
    source.read(head, 0, Math.min(4, source.size));
  } finally {
    source.close();
  }
  return head.toString('latin1') === 'fLaC' ? readFlac(path) : readWav(path);
}
