import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A WAV file with a fifth of a second of a tone. */
export function toneFile(folder: string): { readonly file: string; readonly sha256: string } {
  const frames = 3200;
  const bytes = Buffer.alloc(44 + 2 * frames);
  bytes.write('RIFF', 0, 'latin1');
  bytes.writeUInt32LE(36 + 2 * frames, 4);
  bytes.write('WAVEfmt ', 8, 'latin1');
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(16_000, 24);
  bytes.writeUInt32LE(32_000, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36, 'latin1');
  bytes.writeUInt32LE(2 * frames, 40);
  for (let at = 0; at < frames; at++) bytes.writeInt16LE(Math.round(9000 * Math.sin(at / 7)), 44 + 2 * at);
  const file = join(folder, 'tone.wav');
  writeFileSync(file, bytes);
  return { file, sha256: createHash('sha256').update(bytes).digest('hex') };
}
